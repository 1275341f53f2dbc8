"""Ends of logs as they look when jobs fail: (reason, line that says so, text)."""

LOGS: list[tuple[str, int, str]] = [
    (
        "CPU out of memory",
        1,
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
    ),
    (
        "CPU out of memory",
        1,
        "The node was low on resource: memory. Container main was using 120Gi, request is 64Gi.\n",
    ),
    (
        "CPU out of memory",
        1,
        "[ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9\n",
    ),
    (
        "Model ckpt error",
        1,
        "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n",
    ),
    (
        "CUDA ver. mismatch",
        1,
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (8, 9, 2) but found (8, 7, 0).\n",
    ),
    (
        "Incorrect inputs",
        1,
        "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error.\n\nRepository Not Found for url: x\n",
    ),
    (
        "CUDA failure",
        1,
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 1\n",
    ),
    (
        "CPU out of memory",
        4,
        """[2024-05-02 10:01:00] loading 41 GB of features
Traceback (most recent call last):
  File "/job/prepare.py", line 88, in <module>
numpy.core._exceptions._ArrayMemoryError: Unable to allocate 37.3 GiB for an array with shape (50000, 100000)
srun: error: node17: task 0: Exited with exit code 1
""",
    ),
    (
        "CPU out of memory",
        2,
        """/opt/run.sh: line 12: 4411 Killed                  python train.py
slurmstepd: error: Detected 1 oom-kill event(s) in StepId=88.0. Some of your processes may have been killed.
srun: error: node3: task 0: Out Of Memory
""",
    ),
    (
        "Incorrect inputs",
        4,
        """Traceback (most recent call last):
  File "train.py", line 12, in main
    data = open(args.train)
FileNotFoundError: [Errno 2] No such file or directory: '/mnt/hdfs/corpus/train.tsv'
""",
    ),
    (
        "Incorrect inputs",
        1,
        """17/11/03 08:00:12 ERROR hdfs.DFSClient: hdfsOpenFile(/data/vc1/part-00012): error: EOF reached
command exited with code 1
""",
    ),
    (
        "Semantic error",
        5,
        """Traceback (most recent call last):
  File "model.py", line 40, in forward
    return self.head(x)
           ^^^^^^^^^^^^
RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 256x10)
""",
    ),
    (
        "Semantic error",
        4,
        """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main(lr=args.lr)
TypeError: main() got an unexpected keyword argument 'lr'
""",
    ),
    (
        "Core dump",
        2,
        """Loading custom op
Segmentation fault (core dumped)
mpirun noticed that process rank 0 with PID 71 on node c1 exited on signal 11
""",
    ),
    (
        "Invalid mem access",
        2,
        """terminate called after throwing an instance of 'c10::Error'
  what():  CUDA error: an illegal memory access was encountered
Aborted (core dumped)
""",
    ),
    (
        "Invalid mem access",
        1,
        """*** Error in `./trainer': double free or corruption (!prev): 0x00000000021bb2a0 ***
======= Backtrace: =========
Aborted (core dumped)
""",
    ),
    (
        "Model ckpt error",
        5,
        """Epoch 41 loss 0.412
saving to hdfs://nn/vc3/run7/model.ckpt-41
Traceback (most recent call last):
  File "saver.py", line 9, in save
OSError: HDFS write timed out: hdfs://nn/vc3/run7/model.ckpt-41
""",
    ),
    (
        "Model ckpt error",
        1,
        """RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory
""",
    ),
    (
        "CUDA failure",
        3,
        """I0503 12:00:01.123456    77 solver.cpp:218] Iteration 1200, loss = 2.31
F0503 12:00:02.000000    77 syncedmem.hpp:18] about to check
F0503 12:00:02.123456    77 cudnn_conv_layer.cu:28] Check failed: status == CUDNN_STATUS_SUCCESS (8 vs. 0) \
CUDNN_STATUS_EXECUTION_FAILED
*** Check failure stack trace: ***
Aborted (core dumped)
""",
    ),
    (
        "Syntax error",
        4,
        """  File "train.py", line 31
    print "epoch", e
          ^
SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?
""",
    ),
    ("Syntax error", 1, "run.sh: line 4: syntax error near unexpected token `fi'\n"),
    (
        "Traceback from crash",
        4,
        """Traceback (most recent call last):
  File "train.py", line 7, in <module>
    run()
trainer.errors.TrainingFailedError: stage 2 did not converge
""",
    ),
    (
        "MPI error",
        1,
        """[c4-s1:00312] *** An error occurred in MPI_Allreduce
[c4-s1:00312] *** MPI_ERR_TRUNCATE: message truncated
[c4-s1:00312] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort)
mpirun has exited due to process rank 3 with PID 312 on node c4-s1
""",
    ),
    (
        "GPU out of memory",
        2,
        """Traceback (most recent call last):
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity)
""",
    ),
    (
        "MPI runtime failure",
        1,
        """ORTE has lost communication with a remote daemon.
  HNP daemon   : [[4711,0],0] on node c1
  Remote daemon: [[4711,0],3] on node c9
""",
    ),
    (
        "MPI runtime failure",
        2,
        """Epoch 12 step 900 loss 1.2
[rank3]:[E ProcessGroupNCCL.cpp:474] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=51) timed out
[rank3]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3.
""",
    ),
    ("Permission error", 1, "bash: /vc2/bin/start.sh: Permission denied\n"),
    (
        "Permission error",
        1,
        "org.apache.hadoop.security.AccessControlException: Permission denied: user=ann, access=WRITE, inode=/vc1\n",
    ),
    ("Import error", 2, "Traceback (most recent call last):\nModuleNotFoundError: No module named 'apex'\n"),
    (
        "Job preempted",
        1,
        """slurmstepd: error: *** JOB 5512 ON node7 CANCELLED AT 2024-05-02T11:00:00 DUE TO PREEMPTION ***
Traceback (most recent call last):
KeyboardInterrupt
""",
    ),
    (
        "CUDA init failed",
        1,
        """E tensorflow/stream_executor/cuda/cuda_driver.cc:314] failed call to cuInit: CUDA_ERROR_NO_DEVICE: none
Traceback (most recent call last):
RuntimeError: no GPU
""",
    ),
    ("Model diverged", 2, "Epoch 3 loss 81234.1\nLoss is nan, stopping training\n"),
    (
        "Model diverged",
        1,
        "step 400 loss=nan lr=0.1\nTraceback (most recent call last):\nAssertionError: bad loss\n",
    ),
    (
        "CUDA ver. mismatch",
        1,
        "RuntimeError: CUDA error (35): CUDA driver version is insufficient for CUDA runtime version\n",
    ),
    ("GPU ECC error", 1, "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"),
    ("GPU ECC error", 1, "kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=1201, An uncorrectable double bit error\n"),
    ("Output node error", 1, "EXCEPTION occurred: Output node 'ScaledLogLikelihood' does not exist in the network\n"),
    (
        "Cannot load libs",
        1,
        "./cntk: error while loading shared libraries: libcudart.so.8.0: cannot open shared object file: No such\n",
    ),
    (
        "Cannot load libs",
        2,
        """Traceback (most recent call last):
ImportError: libcudnn.so.7: cannot open shared object file: No such file or directory
""",
    ),
    (
        "Job preempted",
        2,
        "Epoch 3 step 900 loss 1.2\n"
        "slurmstepd: error: *** JOB 8812 ON node7 CANCELLED AT 2024-05-02T10:00:01 DUE TO TIME LIMIT ***\n"
        "srun: error: node7: task 0: Terminated\n",
    ),
    ("Job preempted", 1, "error: Time limit exceeded\n"),
    ("Job preempted", 1, "=>> PBS: job killed: walltime 3612 exceeded limit 3600\n"),
    ("Job preempted", 1, "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n"),
    ("Job preempted", 1, "slurmstepd: error: StepId=71.0 exceeded its time limit, sending signal 15\n"),
    ("Incorrect inputs", 1, "/var/spool/job/slurm_script: line 9: pyhton: command not found\nexited with code 127\n"),
    ("Incorrect inputs", 1, "sh: 1: torchrunn: not found\n"),
    ("Incorrect inputs", 1, "srun: error: node1: task 0: Exited with exit code 127\n"),
    (
        "Model diverged",
        2,
        "Traceback (most recent call last):\nFloatingPointError: Loss became infinite or NaN at iteration=170!\n",
    ),
    ("Model diverged", 1, "FloatingPointError: invalid value (nan) encountered in jit(train_step)\n"),
    ("Model diverged", 1, "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.\n"),
    ("Model diverged", 1, "InvalidArgumentError: Gradients for layer 3 : Tensor had NaN values\n"),
    ("Model diverged", 1, "ValueError: The loss returned in `training_step` is nan.\n"),
    (
        "Semantic error",
        2,
        "Traceback (most recent call last):\nFloatingPointError: divide by zero encountered in log\n",
    ),
    (
        "MPI runtime failure",
        2,
        "Traceback (most recent call last):\nOSError: [Errno 98] Address already in use\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED\n",
    ),
    ("MPI runtime failure", 1, "Error: listen EADDRINUSE: address already in use 0.0.0.0:29500\n"),
    ("No signature", 0, "solver: time limit of 60 s per batch is used\nEpoch 1 step 1\n"),
    ("No signature", 0, "Epoch 1 step 10 loss 2.3\nEpoch 1 step 20 loss 2.2\n"),
]
