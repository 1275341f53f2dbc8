"""Which options each command takes, and which of them mean something here.

Reference: SchedMD, sbatch(1), srun(1), squeue(1), scancel(1), sacct(1), sinfo(1), Slurm 23.11.
"""

from __future__ import annotations

from eunomia.slurm_commands.command_line import FLAG, MAYBE, Option

HELP = Option("help", "h", FLAG, "this text")
LONG_HELP = Option("help", "", FLAG, "this text")
VERSION = Option("version", "V", FLAG, "the version")


def _ignored(names: str, takes: str = "value") -> tuple[Option, ...]:
    """Return options that mean nothing here, of `name` or `name/x`."""
    return tuple(Option(long, short, takes) for long, _, short in (one.partition("/") for one in names.split()))


_JOB = (  # of sbatch, srun and salloc
    Option("job-name", "J", help="the job's name", env="SBATCH_JOB_NAME"),
    Option("output", "o", help="file of its output: %j %A %a %x %u %N", env="SBATCH_OUTPUT"),
    Option("error", "e", help="file of its standard error", env="SBATCH_ERROR"),
    Option("input", "i", help="file of its standard input"),
    Option("open-mode", help="append or truncate", env="SBATCH_OPEN_MODE"),
    Option("partition", "p", help="an accelerator type, or main", env="SBATCH_PARTITION"),
    Option("time", "t", help="longest time: minutes, MM:SS, HH:MM:SS, D-HH[:MM[:SS]]", env="SBATCH_TIMELIMIT"),
    Option("nodes", "N", help="so many times --gpus-per-node, --mem"),
    Option("ntasks", "n", help="processes of srun"),
    Option("ntasks-per-node", help="with --nodes, in place of --ntasks"),
    Option("cpus-per-task", "c", help="CPUs of each task"),
    Option("mem", help="memory of each node: 16G", env="SBATCH_MEM_PER_NODE"),
    Option("mem-per-cpu", help="memory of each CPU", env="SBATCH_MEM_PER_CPU"),
    Option("mem-per-gpu", help="memory of each accelerator", env="SBATCH_MEM_PER_GPU"),
    Option("gres", help="gpu:N or gpu:TYPE:N of each node", env="SBATCH_GRES"),
    Option("gpus", "G", help="N or TYPE:N accelerators in all", env="SBATCH_GPUS"),
    Option("gpus-per-node", help="N or TYPE:N of each node", env="SBATCH_GPUS_PER_NODE"),
    Option("gpus-per-task", help="N or TYPE:N of each task", env="SBATCH_GPUS_PER_TASK"),
    Option("constraint", "C", help="accelerator types: a100|v100", env="SBATCH_CONSTRAINT"),
    Option("dependency", "d", help="afterok:ID:ID, afterany:ID, afternotok:ID, singleton"),
    Option("chdir", "D", help="folder to start in", env="SBATCH_CHDIR"),
    Option("export", help="ALL, NONE or NAME=VALUE,…", env="SBATCH_EXPORT"),
    Option("comment", help="a text beside the job"),
    Option("deadline", help="latest end: a date and time, or now+SPAN"),
    Option("nice", takes=MAYBE, help="lower priority among one's own jobs"),
    Option("priority", help="priority among one's own jobs, -1000 to 1000"),
    Option("requeue", takes=FLAG, help="it may be preempted, and starts again then"),
    Option("no-requeue", takes=FLAG, help="it is never preempted"),
    Option("signal", help="[B:]SIGNAL[@SECONDS] before the time limit", env="SBATCH_SIGNAL"),
    Option("mail-type", help="END, FAIL, BEGIN, ALL: to the address that the site has for you"),
    Option("mail-user"),  # mail goes to the addresses of the site
    Option("quiet", "Q", FLAG, "no notes, and no number"),
    Option("verbose", "v", FLAG, "accepted"),
    *_ignored(
        "account/A qos/q reservation licenses/L nodelist/w nodefile/F exclude/x tasks-per-node mincpus tmp "
        "distribution/m cpu-freq hint cores-per-socket sockets-per-node threads-per-core ntasks-per-core "
        "ntasks-per-socket ntasks-per-gpu gpus-per-socket gpu-bind gpu-freq mem-bind cpus-per-gpu "
        "extra-node-info/B core-spec/S thread-spec switches network power profile acctg-freq wckey "
        "cluster-constraint clusters/M bb bbf container container-id gid uid gres-flags delay-boot mcs-label "
        "prefer batch export-file kill-on-bad-exit/K wait-all-nodes tres-bind tres-per-task resv-ports "
    ),
    *_ignored("exclusive get-user-env propagate no-kill/k", MAYBE),
    *_ignored("contiguous overcommit/O oversubscribe/s reboot spread-job use-min-nodes ignore-pbs no-bell", FLAG),
)  # fmt: skip
SBATCH = (
    *_JOB,
    Option("array", "a", help="0-99, 0-99%4, 1,3,7-9, 0-10:2", env="SBATCH_ARRAY_INX"),
    Option("begin", "b", help="only now; hold and release it for later"),
    Option("hold", "H", FLAG, "submit it held"),
    Option("parsable", "", FLAG, "print the number alone"),
    Option("test-only", "", FLAG, "check it, and say when it would start"),
    Option("wait", "W", FLAG, "wait until it ends, with its exit code"),
    Option("wrap", help="this line, as the script"),
    HELP, VERSION,
)  # fmt: skip
SRUN = (
    *_JOB,
    Option("unbuffered", "u", FLAG, "accepted"),
    Option("label", "l", FLAG, "the number of the process before each line"),
    Option("pty", "", MAYBE, "inside a job: its own terminal"),
    *_ignored("mpi cpu-bind jobid task-prolog task-epilog prolog epilog slurmd-debug het-group relative/r bcast "
              "multi-prog ntasks-per-tres disable-status/X compress threads/T wait/W immediate/I"),
    *_ignored("overlap exact preserve-env/E quit-on-interrupt whole", FLAG),
    HELP, VERSION,
)  # fmt: skip
SALLOC = (*_JOB, *_ignored("immediate/I", MAYBE), *_ignored("no-shell", FLAG), HELP, VERSION)
_SEEN = (
    Option("user", "u", help="jobs of these users"),
    Option("name", "n", help="jobs of these names"),
    Option("states", "t", help="PD,R,CG,CD,F,CA,TO …, or all"),
    Option("partition", "p", help="jobs on these accelerator types"),
)
SQUEUE = (
    *_SEEN,
    Option("me", "", FLAG, "one's own jobs"),
    Option("jobs", "j", MAYBE, "these jobs: 60,61_3"),
    Option("array", "r", FLAG, "one line for each element of an array"),
    Option("noheader", "h", FLAG, "no line of titles"),
    Option("format", "o", help='"%i %t %R", with %.8j for a width', env="SQUEUE_FORMAT"),
    Option("Format", "O", help="JobID:10,State,…", env="SQUEUE_FORMAT2"),
    Option("sort", "S", help="by i (number), with - downwards", env="SQUEUE_SORT"),
    Option("long", "l", FLAG, "more columns"),
    Option("start", "", FLAG, "when waiting jobs start, as `eunomia when` says"),
    Option("json", "", MAYBE, "as JSON"),
    *_ignored("account/A qos/q nodelist/w reservation/R licenses/L clusters/M iterate/i steps/s"),
    *_ignored("all/a hide priority/P verbose/v federation local sibling only-job-state", FLAG),
    LONG_HELP, VERSION,
)  # fmt: skip
SCANCEL = (
    *_SEEN[:1],
    *_SEEN[1:2],
    Option("state", "t", help="only PENDING, RUNNING or SUSPENDED ones"),
    Option("partition", "p", help="only jobs on these accelerator types"),
    Option("me", "", FLAG, "one's own jobs"),
    Option("signal", "s", help="TERM, KILL, INT end the job; others have no way to it"),
    Option("quiet", "Q", FLAG, "nothing about jobs that are over"),
    Option("batch", "b", FLAG, "accepted"),
    Option("full", "f", FLAG, "accepted"),
    Option("jobname", help="jobs of this name"),
    Option("verbose", "v", FLAG, "accepted"),
    *_ignored("account/A qos/q nodelist/w reservation/R clusters/M wckey sibling"),
    *_ignored("interactive/i hurry/H cron ctld", FLAG),
    LONG_HELP, VERSION,
)  # fmt: skip
SACCT = (
    Option("jobs", "j", help="these jobs: 60,61_3"),
    Option("user", "u", help="jobs of these users"),
    Option("uid", help="as --user"),
    Option("name", help="jobs of these names"),
    Option("state", "s", help="jobs in these states at some time of the span"),
    Option("partition", "r", help="jobs on these accelerator types"),
    Option("starttime", "S", help="jobs that were live from then on; default: today, or with -j all"),
    Option("endtime", "E", help="jobs that were live until then"),
    Option("format", "o", help="JobID,State%20,…", env="SACCT_FORMAT"),
    Option("parsable", "p", FLAG, "fields with | between and behind them"),
    Option("parsable2", "P", FLAG, "fields with | between them"),
    Option("delimiter", help="in place of |"),
    Option("noheader", "n", FLAG, "no lines of titles"),
    Option("allocations", "X", FLAG, "no lines of steps"),
    Option("allusers", "a", FLAG, "jobs of all users that one may see"),
    Option("array", "", FLAG, "one line for each element of an array"),
    Option("brief", "b", FLAG, "JobID,State,ExitCode"),
    Option("long", "l", FLAG, "more columns"),
    Option("helpformat", "e", FLAG, "names of fields"),
    Option("json", "", MAYBE, "as JSON"),
    *_ignored("accounts/A cluster clusters/M qos/q nodelist/N group/g gid wckeys/W timelimit-min/k timelimit-max/K "
              "nnodes/i ncpus/I associations/x file/f flags/F reason/R units"),
    *_ignored("allclusters/L completion/c duplicates/D truncate/T use-local-uid verbose/v noconvert whole-hetjob "
              "batch-script/B env-vars local", MAYBE),
    HELP, VERSION,
)  # fmt: skip
SINFO = (
    Option("Node", "N", FLAG, "a line for each node"),
    Option("noheader", "h", FLAG, "no line of titles"),
    Option("summarize", "s", FLAG, "a line for each partition"),
    Option("format", "o", help='"%P %a %D %t %N %G"', env="SINFO_FORMAT"),
    Option("Format", "O", help="Partition,NodeList,…"),
    Option("partition", "p", help="these partitions", env="SINFO_PARTITION"),
    Option("nodes", "n", help="these nodes"),
    Option("states", "t", help="nodes in these states"),
    Option("long", "l", FLAG, "more columns"),
    Option("list-reasons", "R", FLAG, "why nodes are out of service"),
    Option("exact", "e", FLAG, "accepted"),
    Option("json", "", MAYBE, "as JSON"),
    *_ignored("clusters/M iterate/i sort/S"),
    *_ignored("all/a dead/d responding/r hide reservation/T verbose/v future/F federation local", FLAG),
    LONG_HELP, VERSION,
)  # fmt: skip
SCONTROL = (
    Option("oneliner", "o", FLAG, "each on one line"),
    Option("quiet", "Q", FLAG, "accepted"),
    Option("details", "d", FLAG, "accepted"),
    Option("json", "", MAYBE, "as JSON"),
    *_ignored("clusters/M"),
    *_ignored("all/a hide verbose/v", FLAG),
    HELP, VERSION,
)  # fmt: skip
SACCTMGR = (
    Option("noheader", "n", FLAG, "no lines of titles"),
    Option("parsable", "p", FLAG, "fields with | between and behind them"),
    Option("parsable2", "P", FLAG, "fields with | between them"),
    Option("immediate", "i", FLAG, "accepted"),
    Option("quiet", "Q", FLAG, "accepted"),
    Option("associations", "s", FLAG, "accepted"),
    *_ignored("readonly/r verbose/v oneliner/o", FLAG),
    HELP, VERSION,
)  # fmt: skip
