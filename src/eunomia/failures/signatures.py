"""Signatures of failures in logs, with Philly's reason for each.

The first signature that matches a line counts. The line with the lowest tier counts, so that a named cause precedes its
effects on other ranks, and these a bare traceback or exit code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CAUSE = 0  # names the cause
PROCESS = 1  # a process died or lost its peers: a cause, or the effect of one
AFTERMATH = 2  # cleanup by launchers and schedulers
IMPLICIT = 3  # an exception that does not name its cause
BARE = 4  # a traceback without its last line, or an exit code


class Signature(NamedTuple):
    """A pattern by which a line of a log indicates a failure, with its reason."""

    name: str
    reason: str  # a name of `philly_reasons.REASONS`
    tier: int
    pattern: re.Pattern[str]
    at_any_level: bool = False  # also on lines logged as a warning or less
    generic: bool = False  # an exception that is often handled and followed by another one


def signatures(
    reason: str, tier: int, *rows: tuple[str, ...], at_any_level: bool = False, generic: bool = False
) -> list[Signature]:
    """Return signatures of one reason from (name, patterns …), which ignore case."""
    return [
        Signature(name, reason, tier, re.compile("|".join(alternatives), re.IGNORECASE), at_any_level, generic)
        for name, *alternatives in rows
    ]


_ON_HOST = r"(?:device:CPU|allocator cpu)"
_NOT_ON_HOST = rf"(?!.*{_ON_HOST})"
_CHECKPOINT = r"(?:check[-_ ]?point|ckpt)"
_NOT_FOUND = r"(?:FileNotFound|NotFoundError|NoSuchFile|No such file|does not exist|not found|cannot open|can't open)"
_HANDLING = r"(?:sav|writ|load|restor|read|upload|open|creat|find)"
_MISSING = r"(?:not found|does not exist|not in graph|invalid|undefined|missing|unknown)"

SIGNATURES: tuple[Signature, ...] = (
    *signatures(
        "GPU ECC error", CAUSE,
        ("ecc-uncorrectable", r"(?:uncorrectable|double[- ]bit) ECC", r"ECC error (?:encountered|detected)",
         r"ECC_UNCORRECTABLE"),
        ("xid-ecc", r"NVRM: Xid.*\): (?:48|63|64|94|95)\b"),
        at_any_level=True,
    ),
    *signatures(
        "Job preempted", CAUSE,
        ("scheduler-preempted", r"due to preemption",
         r"(?:job|task|pod|container|instance|trial)\b.{0,40}\b(?:was |has been |been |is being )?preempted"),
        ("preempted-by", r"\bpreempt(?:ed|ing) (?:by|to|in favou?r|for)\b",
         r"preemption (?:notice|signal|request) received"),
        ("time-limit", r"due to time limit", r"\bwalltime\b.{0,40}\bexceeded",
         r"(?:^\W*(?:error: )?|\b(?:job|run|wall|wall[- ]?clock) ?)time ?limit (?:was |has been )?(?:exceeded|reached)",
         r"exceeded .{0,40}\b(?:wall ?time|wall[- ]?clock|job time|time limit)", r"TERM_RUNLIMIT",
         r"active .{0,40}longer than (?:the )?specified deadline"),
        at_any_level=True,
    ),
    *signatures(
        "CPU out of memory", CAUSE,
        ("oom-killer", r"Out of memory: Kill(?:ed)? process", r"Killed process \d+.*(?:rss|vm|oom)",
         r"invoked oom-killer", r"oom-kill:", r"oom[-_ ]kill(?:er)? event", r"Memory cgroup out of memory"),
        ("oom-killed-container", r"\bOOMKilled\b",
         r"(?:beyond|exceed(?:ed|s|ing)?) .{0,30}(?:physical|virtual|job|step)? ?memory limit",
         r"running beyond physical memory", r"killed .{0,40}node running low on memory", r"low on resource: memory"),
        ("out-of-shared-memory", r"out of shared memory", r"insufficient shared memory", r"/dev/shm.*No space left"),
        at_any_level=True,
    ),
    *signatures(
        "GPU out of memory", CAUSE,
        ("torch-out-of-memory", r"CUDA out of memory", r"torch\.(?:cuda\.)?OutOfMemoryError",
         r"CUDA error: out of memory", r"HIP out of memory"),
        ("cuda-out-of-memory", r"CUDA_ERROR_OUT_OF_MEMORY", r"cudaErrorMemoryAllocation",
         r"cudaMalloc failed: out of memory", r"cuda(?:Malloc)?\b.{0,40}\bout of memory",
         r"CUBLAS_STATUS_ALLOC_FAILED", r"CUDNN_STATUS_ALLOC_FAILED"),
        ("allocating-on-gpu", rf"OOM when allocating tensor{_NOT_ON_HOST}.*(?:GPU|device)",
         rf"(?:ResourceExhaustedError|RESOURCE_EXHAUSTED)\b{_NOT_ON_HOST}.*(?:GPU|allocat)",
         r"Check failed: error == cudaSuccess.*out of memory"),
    ),
    *signatures(
        "CPU out of memory", CAUSE,
        ("memory-error", r"\bMemoryError\b", r"_ArrayMemoryError", r"Unable to allocate .*(?:array|[KMGT]i?B)"),
        ("cannot-allocate-memory", r"Cannot allocate memory", r"\[Errno 12\]", r"std::bad_alloc",
         r"DefaultCPUAllocator: (?:can't|not enough)", rf"OOM when allocating tensor.*{_ON_HOST}",
         r"java\.lang\.OutOfMemoryError", r"virtual memory exhausted"),
    ),
    *signatures(
        "CUDA ver. mismatch", CAUSE,
        ("driver-too-old", r"driver version is insufficient for CUDA runtime", r"cudaErrorInsufficientDriver",
         r"NVIDIA driver on your system is too old", r"forward compatibility was attempted",
         r"cudaErrorCompatNotSupported"),
        ("kernel-version-differs", r"kernel version .* does not match DSO version",
         r"Driver/library version mismatch", r"NVML: Driver/library", r"API mismatch: the client has the version"),
        ("built-for-another", r"no kernel image is available for execution", r"cudaErrorNoKernelImageForDevice",
         r"CUDA_ERROR_NO_BINARY_FOR_GPU", r"(?:detected )?CUDA version .{0,40}mismatch",
         r"CUDNN_STATUS_ARCH_MISMATCH", r"Loaded runtime CuDNN library: .* but source was compiled with",
         r"cuDNN version incompatibility"),
    ),
    *signatures(
        "CUDA init failed", CAUSE,
        ("no-device", r"no CUDA-capable device", r"CUDA_ERROR_NO_DEVICE", r"No CUDA GPUs are available",
         r"Found no NVIDIA driver", r"CUDA_ERROR_UNKNOWN.*cuInit", r"failed call to cuInit",
         r"NVIDIA-SMI has failed"),
        ("initialisation", r"CUDA(?: error)?:? ?(?:driver )?initiali[sz]ation (?:error|failed)",
         r"cudaErrorInitializationError", r"CUDA_ERROR_NOT_INITIALIZED", r"CUDNN_STATUS_NOT_INITIALIZED",
         r"CUBLAS_STATUS_NOT_INITIALIZED", r"Cannot re-initialize CUDA", r"cudaGetDeviceCount\(\)",
         r"CUDA unknown error"),
        ("device-busy", r"CUDA-capable device\(s\) is/are busy", r"CUDA error: invalid device ordinal",
         r"cudaErrorDevicesUnavailable", r"cudaErrorInvalidDevice", r"CUDA_ERROR_INVALID_DEVICE"),
    ),
    *signatures(
        "Invalid mem access", CAUSE,
        ("cuda-illegal-address", r"illegal memory access", r"CUDA_ERROR_ILLEGAL_ADDRESS", r"cudaErrorIllegalAddress",
         r"misaligned address", r"CUDA_ERROR_MISALIGNED"),
        ("heap-corruption", r"double free or corruption", r"free\(\): invalid (?:pointer|size|next size)",
         r"munmap_chunk\(\): invalid", r"malloc\(\): (?:memory corruption|corrupted|invalid)",
         r"corrupted (?:size vs|double-linked)", r"realloc\(\): invalid", r"heap-(?:buffer-overflow|use-after-free)",
         r"stack smashing detected"),
        ("bad-address", r"SIGSEGV: invalid memory reference", r"invalid memory (?:access|reference)",
         r"access violation", r"AccessViolationException", r"address not mapped to object"),
    ),
    *signatures(
        "CUDA failure", CAUSE,
        ("device-assert", r"device-side assert triggered", r"CUDA_ERROR_ASSERT", r"cudaErrorAssert"),
        ("launch-failed", r"unspecified launch failure", r"CUDA_ERROR_LAUNCH_(?:FAILED|TIMEOUT)", r"cudaErrorLaunch",
         r"launch timed out and was terminated", r"\bOutOfResources: out of resource"),
        ("cudnn-cublas", r"CUDNN_STATUS_(?!SUCCESS)\w+", r"CUBLAS_STATUS_(?!SUCCESS)\w+",
         r"CUSOLVER_STATUS_(?!SUCCESS)\w+", r"CUSPARSE_STATUS_(?!SUCCESS)\w+", r"cuDNN (?:error|failure)",
         r"Unable to find a valid cuDNN algorithm",
         r"cuBLAS (?:error|failure)"),
        ("gpu-lost", r"GPU is lost", r"GPU has fallen off the bus", r"NVRM: Xid"),
        ("cuda-error", r"(?<!unhandled )CUDA error\b", r"CUDA failure \d+", r"CUDA_ERROR_\w+", r"cudaError\w+",
         r"CUDA runtime error", r"THCudaCheck FAIL", r"Cuda(?:Call)? fail"),
    ),
    *signatures(
        "Cannot load libs", CAUSE,
        ("shared-library", r"error while loading shared libraries",
         r"(?:lib[\w.+-]+\.so[\d.]*|\.dll)\b.{0,20}: cannot open shared object", r"DLL load failed",
         r"Could not load (?:dynamic )?library", r"undefined symbol:",
         r"version [`'\"]?(?:GLIBC|CXXABI)\w*_[\d.]+['\"]? not found"),
    ),
    *signatures(
        "Import error", CAUSE,
        ("python-import", r"\bModuleNotFoundError\b", r"\bImportError\b", r"No module named"),
    ),
    *signatures(
        "Syntax error", CAUSE,
        ("python-syntax", r"\bSyntaxError\b", r"\bIndentationError\b", r"\bTabError\b"),
        ("shell-syntax", r"syntax error near unexpected token", r"syntax error: unexpected",
         r"unexpected EOF while looking for matching", r"parse error (?:at|near|on) "),
    ),
    *signatures(
        "Permission error", CAUSE,
        ("permission-denied", r"\bPermissionError\b", r"Permission denied", r"\[Errno 13\]", r"EACCES",
         r"\[Errno 1\] Operation not permitted"),
        ("access-denied", r"AccessControlException", r"\bAccess ?Denied\b", r"403 Forbidden", r"401 Unauthorized",
         r"AuthorizationPermissionMismatch", r"does not have .{0,60}(?:access|permission)"),
    ),
    *signatures(
        "Model ckpt error", CAUSE,
        ("checkpoint-file",
         rf"(?:{_NOT_FOUND}|IOError|OSError|Errno|EOF|corrupt|DataLoss|timed? ?out).{{0,160}}{_CHECKPOINT}",
         rf"{_CHECKPOINT}.{{0,160}}(?:{_NOT_FOUND}|corrupt|truncated|EOF)"),
        ("checkpoint-operation",
         rf"(?:fail(?:ed|ure)?|unable|could ?n[o']t|cannot|error)\b.{{0,40}}\b{_HANDLING}\w*\b.{{0,60}}\b{_CHECKPOINT}",
         rf"{_CHECKPOINT}\w* (?:save|write|load|restore|upload)\w* (?:failed|error)"),
        ("torch-archive", r"PytorchStream(?:Reader|Writer) failed",
         r"inline_container\.cc.*(?:unexpected pos|failed)", r"failed finding central directory",
         r"Unable to open table file", r"\bSafetensorError\b"),
        ("disk-full", r"No space left on device", r"Disk quota exceeded", r"\[Errno (?:28|122)\]",
         r"DSQuotaExceededException"),
    ),
    *signatures(
        "Model diverged", CAUSE,
        ("loss-not-finite", r"NaN loss during training", r"NanLossDuringTraining", r"model diverged",
         r"training diverged", r"diverged with loss",
         r"loss (?:is|became|was|has become|went to|turned) ['\"]?(?:nan|inf(?:inite)?|not finite|non-?finite)",
         r"(?:nan|non-?finite|infinite) loss (?:detected|encountered|at|found)", r"loss is probably exploding",
         r"loss returned (?:in|by|from) .{0,60}\bis ['\"]?(?:nan|inf)\b", r"Minimum loss scale reached"),
        at_any_level=True,
    ),
    *signatures(
        "Model diverged", CAUSE,
        ("value-not-finite",
         r"FloatingPointError\b.*(?:\bnan\b|\binf\b|infinit|finite|overflow|invalid value|loss|gradient)",
         r"returned nan values in its \d+\w* output", r"Tensor had (?:Inf|NaN)(?: and NaN)? values",
         r"\bgrad(?:ient)?s?(?:[ _]norm)? (?:is|are|was|became|contains?) (?:nan\b|infinite|not finite|non-?finite)"),
    ),
    *signatures(
        "Output node error", CAUSE,
        ("output-node",
         rf"output[-_ ]?nodes?(?:_names?)?\b.{{0,60}}{_MISSING}",
         r"(?:no|invalid|unknown|missing|cannot find|could not find) (?:the )?output[-_ ]?nodes?\b",
         r"\bis not in graph\b"),
    ),
    *signatures(
        "Incorrect inputs", CAUSE,
        ("hdfs", r"HDFS.{0,120}(?:not found|EOF|does not exist|fail|error|cannot|unable)",
         r"hdfs\w*(?:Open|Read|Exists)\w*\b.{0,80}(?:fail|error)", r"BlockMissingException",
         r"Could not obtain block"),
        ("file-not-found", r"\bFileNotFound(?:Error|Exception)\b",
         r"\bRepository(?:NotFoundError| Not Found)\b", r"No such file or directory", r"NoSuchKey",
         r"\[Errno 2\]", r"input (?:path|file).{0,80}(?:does not exist|not found)",
         r"(?:file|path|dataset|directory|folder)\b.{0,120} (?:does not exist|doesn't exist|not found|cannot be found)",
         r"Unable to open file", r"(?:can't|cannot) open (?:file|input)"),
        ("unreadable-data", r"\bEOFError\b", r"EOFException", r"Unexpected end of (?:file|data|stream|JSON)",
         r"BadZipFile", r"(?:tarfile\.)?ReadError", r"DataLossError", r"corrupted record", r"UnidentifiedImageError",
         r"image file is truncated", r"cannot identify image", r"truncated (?:file|record)", r"Invalid TFRecord",
         r"not a gzip file", r"BadGzipFile", r"Unable to read (?:data|input)"),
        ("undecodable-data", r"JSONDecodeError", r"UnicodeDecodeError", r"ParserError", r"yaml\.\w+\.\w*Error",
         r"malformed (?:input|record|line|data)", r"could not convert string to float"),
        ("command-line",
         r"error: (?:unrecognized arguments|argument \S+|the following arguments are required|invalid choice)",
         r"unknown (?:command line )?flag", r"no such option", r"Missing (?:option|argument)"),
        ("no-such-command", r"\bcommand not found\b", r"^\S*sh: (?:line )?\d+: \S+: not found$"),
    ),
    *signatures(
        "MPI error", PROCESS,
        ("mpi-call", r"An error occurred in MPI_", r"Fatal error in P?MPI_", r"\bMPI_ERR_\w+",
         r"MPI_ERRORS_ARE_FATAL", r"MPI error\b", r"error in MPI_\w+"),
    ),
    *signatures(
        "Core dump", PROCESS,
        ("segmentation-fault", r"Segmentation fault", r"\bSIGSEGV\b", r"Bus error", r"\bSIGBUS\b",
         r"Floating point exception", r"Illegal instruction", r"\bSIGILL\b", r"\bSIGFPE\b"),
        ("core-dumped", r"core dumped", r"\bSIGABRT\b", r"terminate called (?:after throwing|without)",
         r"^\s*Aborted\b", r"A fatal error has been detected by the Java Runtime"),
    ),
    *signatures(
        "MPI runtime failure", PROCESS,
        ("nccl", r"NCCL (?:error|failure|timeout)", r"ncclSystemError", r"ncclInternalError", r"ncclRemoteError",
         r"ncclUnhandledCudaError", r"ProcessGroupNCCL.{0,200}(?:timeout|timed out|exception|abort)",
         r"Watchdog caught collective operation timeout", r"DistBackendError", r"unhandled system error, NCCL",
         r"Gloo.{0,80}(?:fail|timed? ?out|closed)", r"NCCL communicator was aborted"),
        ("daemon-lost", r"ORTE (?:has lost communication|does not know|was unable|daemon)", r"ORTE_ERROR_LOG",
         r"orted\b.{0,80}(?:fail|died|unexpected|abort)", r"\bHNP\b.{0,60}lost",
         r"hydra\w*.{0,80}(?:assert|error|fail|lost)", r"PMIX? (?:ERROR|server error)", r"UCX +ERROR",
         r"lost (?:connection|communication) (?:to|with) (?:the )?(?:daemon|remote|peer|rank|node)",
         r"heartbeat.{0,60}(?:lost|missed|timed? ?out|fail)"),
        ("peer-gone", r"Connection (?:reset|closed) by (?:remote )?peer", r"Socket (?:Timeout|closed)",
         r"Broken pipe", r"Stale file handle", r"No route to host", r"Connection (?:refused|timed out)",
         r"horovod.*(?:has been shut ?down|HorovodInternalError)", r"HorovodInternalError",
         r"Timed out waiting for .{0,40}(?:client|rank|worker)s?"),
    ),
    *signatures(
        "MPI runtime failure", PROCESS,
        ("port-taken", r"Address already in use", r"EADDRINUSE", r"port .{0,20}(?:is )?already in use"),
    ),
    *signatures(
        "MPI runtime failure", AFTERMATH,
        ("mpi-abort", r"MPI_ABORT", r"MPI_Abort", r"application called MPI_",
         r"mpi(?:run|exec)\b.{0,60}(?:noticed that process|has exited|detected that one or more|was unable)",
         r"BAD TERMINATION OF ONE OF YOUR APPLICATION"),
    ),
    *signatures(
        "CPU out of memory", AFTERMATH,
        ("killed", r"(?:^|: line \d+: *\d* *|\s\d+ )Killed\b(?!.*\b(?:by user|by signal: (?!Killed)))",
         r"killed by signal: (?:Killed|9)", r"Signal 9 \(SIGKILL\)", r"(?:killed|terminated) by signal 9",
         r"task \d+: Out Of Memory", r"exits with return code = -9\b"),
    ),
    *signatures(
        "Semantic error", CAUSE,
        ("shapes", r"(?:shape|size|dimension|rank)s?\b.{0,40}\bmis-?match",
         r"mis-?match(?:ed)?\b.{0,40}\b(?:shape|size|dimension)",
         r"shapes\b.*\b(?:cannot be multiplied|not aligned|incompatible)", r"Incompatible shapes",
         r"must match the size of tensor", r"Expected input batch_size",
         r"Dimensions? .{0,30}must (?:be equal|match)", r"Sizes of tensors must match",
         r"Target size .* must be the same"),
        ("types-and-devices", r"Expected all tensors to be on the same device",
         r"expected (?:scalar|object of scalar|dtype) type", r"expected .{0,40}\bdtype\b",
         r"should be the same (?:type|dtype)", r"Error\(s\) in loading state_dict",
         r"element 0 of tensors does not require grad", r"modified by an inplace operation", r"InvalidArgumentError",
         r"FailedPreconditionError"),
    ),
    *signatures(
        "Semantic error", CAUSE,
        ("python-mistake",
         r"\b(?:Type|Value|Key|Attribute|Index|Name|UnboundLocal|ZeroDivision|NotImplemented|Overflow)Error\b"),
        generic=True,
    ),
    *signatures(
        "Core dump", BARE,
        ("exit-by-fault",
         r"(?:exit(?:ed|code| code| status)?|return(?:ed|code)|status)\b.{0,30}\W(?:139|134|135|136|-11|-6|-7|-8)\b"),
    ),
    *signatures(
        "CPU out of memory", BARE,
        ("exit-by-kill", r"(?:exit(?:ed|code| code| status)?|return(?:ed|code)|status)\b.{0,30}\W(?:137|-9)\b"),
    ),
    *signatures(
        "Incorrect inputs", BARE,
        ("exit-no-command", r"exit(?:ed| code| status)\b.{0,20}\b127\b"),
    ),
    *signatures(
        "Semantic error", CAUSE,
        ("float-mistake", r"\bFloatingPointError\b"),
        generic=True,
    ),
    *signatures(
        "Permission error", BARE,
        ("exit-not-executable", r"exit(?:ed| code| status)\b.{0,20}\b126\b"),
    ),
    *signatures(
        "Traceback from crash", IMPLICIT,
        ("exception", r"(?-i:(?:^|[\s:>\]|])(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Failure)(?::|$))",
         r"Exception in thread", r"Unhandled exception", r"EXCEPTION occurred", r"About to throw exception",
         r"^panic:", r"thread '.*' panicked"),
    ),
    *signatures(
        "Traceback from crash", BARE,
        ("traceback", r"Traceback \(most recent call last\)", r"\[CALL STACK\]",
         r"Stack ?trace:"),
    ),
)  # fmt: skip
