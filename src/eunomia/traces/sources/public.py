"""The public sources that `eunomia data` knows. Facts, each as published at the commit it names.

A checksum is given where the file there is known to the byte; without one a copy is verified by its columns and rows.
"""

from __future__ import annotations

from eunomia.traces.sources.source import File, TraceSource

MIT, APACHE, CC_BY = "MIT", "Apache-2.0", "CC-BY-4.0"

OPENB = tuple(
    File(path=f"data/csv/openb_{name}.csv", size_bytes=size, rows=rows, sha256=sha256)
    for name, size, rows, sha256 in (
        ("node_list_all_node", 52287, 1523, "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15"),
        ("node_list_gpu_node", 42353, 1213, "2beca64b4d3dfa342036a34b56a495c6cef9225db836c81f541282cb1df320b5"),
        ("pod_list_cpu037", 518687, 7336, "8ed554026d041b15ff21ddc104d9a21dbd9a93c496262fa23ef7b5be27e220dc"),
        ("pod_list_cpu050", 525811, 7439, "747f43247bffc2b0bb081d7f61f0705ca8d390dafc0b647e642c92f3baf3ba1e"),
        ("pod_list_cpu072", 537576, 7608, "f8a2b031461b54d7b9f06d55473c2371eb3357b78a255c646bdca5e0833a8a2f"),
        ("pod_list_cpu100", 554709, 7853, "bec1c33fbdde61fd463877534ec79b393aec73e1cbb22d55fab9f166ac480982"),
        ("pod_list_cpu200", 622703, 8832, "b7e9d8a1a601da84d6e0b4110b19ef5001be5e4796d33e7b82f166ba95161f87"),
        ("pod_list_cpu235", 651171, 9240, "87bebd4d012faa8305ce1fd82737f51cf03361aac28b75d42e34aa656d7f4ee0"),
        ("pod_list_cpu250", 663708, 9420, "134c21ff96d57533df8a37b67632972884fec9396e77cd0898ddc370cc8e607d"),
        ("pod_list_cpu300", 710698, 10094, "76528825f40ee662cb098b3b6e683c1efd9f87a0c8af7e628df1f32c639636d1"),
        ("pod_list_default", 575468, 8152, "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8"),
        ("pod_list_gpushare100", 561220, 8152, "12dbc07d6a49bf8641e2275a2ff5bf7be74b5df7d148d531e135b140b95f9a3d"),
        ("pod_list_gpushare20", 574603, 8152, "9be2d0efb52e242c32e23dd184cc5fcc1983478c6c9c02cbb6b4b62925c0ffcd"),
        ("pod_list_gpushare40", 572662, 8152, "d83ce79a4eb6987524bedbb0c65e41aed3a36bf6c1b78b86234c3687a07e1d40"),
        ("pod_list_gpushare60", 566361, 8152, "d31809628128a1f24491086eda4af3e23882b9213d3ef57a56ee2d1af69492fe"),
        ("pod_list_gpushare80", 563740, 8152, "88b6649369ced40d0fde287d2498ea61ff4b05fccba8bdc95daf6042f2f8431e"),
        ("pod_list_gpuspec05", 577176, 8152, "8f1c0ef7e4e511e982bd2818898ba22ee6d273bf5fce124b7ace285b5928cf4e"),
        ("pod_list_gpuspec10", 579461, 8152, "2dc7e4cb9480484f08539720b433a9ec9ab5d76b396f3f7557c53a2ff78a7611"),
        ("pod_list_gpuspec20", 582612, 8152, "6b9b89ab8913c1c074e994e98f548cf1a872fc5f76f2442ca8cd514a478b00a9"),
        ("pod_list_gpuspec25", 584915, 8152, "9d030679a2ccd7e27a7ec9ff15baff34480d22a0012515691fc187e3f35ee68c"),
        ("pod_list_gpuspec33", 587467, 8152, "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652"),
        ("pod_list_multigpu20", 271530, 8324, "d9ec6f6c74fb980cc0b81239470c6353fceea077ea9abd610003b604c7cc2b01"),
        ("pod_list_multigpu30", 277920, 8508, "a5e479c6444b1d83eef848159cf00c3cfa13441b2d1e2c113c391b91f1cc5b11"),
        ("pod_list_multigpu40", 286202, 8746, "32c9e8731ca07ef96108aa65f2a289bb9aacb47f642ed9e3789f99b242df60eb"),
        ("pod_list_multigpu50", 297219, 9061, "206f2f5959db30ecb7c44e7f13197c8ec50b7a35558ad3777cc3662ef0fe5373"),
    )
)

SHOCKWAVE = tuple(
    File(
        path=f"scheduler/traces/reproduce/{name}_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace",
        size_bytes=size,
        rows=rows,
        sha256=sha256,
    )
    for name, size, rows, sha256 in (
        ("120_0.2_5_100_40_25", 18720, 120, "f5728b8c038c330d21b98bc5930949d21769bd956e2ad457a4eb167dd33f34d6"),
        ("220_0.2_5_100_25_4", 35445, 220, "85bd7d8ad42fc966b18704fdb7b23459d139d786067bd255e19dfae357dcbd1d"),
        ("460_0.2_5_100_10_1", 73485, 460, "3133a1cf4f532035568d9c81cedced7822fae343973955015b2b4f15e54a327d"),
        ("900_0.2_5_1000_5_15", 143366, 900, "167413508519db8414ce25c9f264772cf32633eeba0f47b02a3d4354bdddf5d6"),
        ("900_0.2_5_100_5_15", 143307, 900, "bd494a70cb96312328934d0611b0eb52285f81180f02d83e17319d04a492c59f"),
    )
)

TIRESIAS = tuple(
    File(path=f"simulator/{name}.csv", size_bytes=size, rows=rows, sha256=sha256)
    for name, size, rows, sha256 in (
        ("60_job", 1871, 60, "17575949a6e570960db42bc5576739de9c334ed4c664859841c4f01ede38bd1b"),
        ("yarn-gput1000", 6066, 1001, "8c351e9c755207e5669b1db10abd4c993fbe5c230ea998c127be516b628c6c61"),
        ("yarn-gput5000", 30255, 5000, "c68da2ecb0bd54c147dd42c0a1690ddd0f5f424ebad0b7666ea415fca2b5bf9d"),
        ("yarn-gput10000", 60490, 9999, "5452a607079d8637a0f7be3176c3cc6a9f33baa7c6980e79f4808087157b9b75"),
    )
)

GAVEL = (
    File(path="scheduler/traces/physical_cluster/small_test.trace", size_bytes=2860, rows=20,
         sha256="1a216a80d1f40bc2b88a3edb5f14ff687560024c085a6392613618a47cbe54dc"),
    File(path="scheduler/simulation_throughputs.json", size_bytes=1240176,
         sha256="17111f7295f03265fd9e5118d7eba31e3dd9d6e50a2e215c13ad3d3f91f74381"),
)  # fmt: skip

WORKLOADS = {"": 160, "-0.5": 80, "-1.5": 240, "-2.0": 320, "-realistic": 160}  # of Pollux: set → jobs of each
POLLUX = tuple(
    File(
        path=f"simulator/workloads{load}/workload-{k}.csv",
        name=f"workloads{load}_{k}.csv",
        rows=jobs,
        columns=("name", "time", "application", "num_replicas", "batch_size"),
    )
    for load, jobs in WORKLOADS.items()
    for k in range(1, 9)
)
MURI_COLUMNS = ("job_id", "num_gpu", "submit_time", "duration", "resource_time_0")
MURI = tuple(
    File(path=f"simulator/trace-data/trace{k}.csv", rows=rows, columns=MURI_COLUMNS)
    for k, rows in ((1, 1494), (2, 5755), (3, 992), (4, 2638))
)
RFOLD = ("#job id", "arrival time (sec)", "size", "duration (sec)")
DEADLINES = ("job_id", "submit_time", "ddl", "num_gpu", "duration")

SOURCES = (
    TraceSource(
        name="philly",
        about="117,325 jobs of Microsoft's Philly, 2017, with their attempts, machines and utilisation, in one "
        "archive: unpack it and read cluster_job_log",
        paper="M. Jeon et al., USENIX ATC 2019",
        licence=CC_BY,
        repository="msr-fiddle/philly-traces",
        commit="29a1b87fa2d9ed80b83c9e3a37f3a88d382b031d",
        files=(
            File(
                path="trace-data.tar.gz",
                size_bytes=1055988361,
                sha256="2037ccf63a725a02be718b0e1aeee6142c90b7f62d0d849295120e9f6ba13d2c",
                large=True,
            ),
        ),
        format="philly-log",
    ),
    TraceSource(
        name="philly-rfold",
        about="111,549 jobs of Philly: arrival, size, span from first start to last end",
        paper="M. Jeon et al., USENIX ATC 2019",
        licence=f"{MIT} (data {CC_BY})",
        repository="shuoshuc/RFold",
        commit="b98145539be208ceae371ecaa0464e345c90234b",
        files=(File(path="WorkloadGen/data/philly_trace.csv", rows=111_549, columns=RFOLD),),
        format="rfold",
    ),
    TraceSource(
        name="philly-deadlines",
        about="876 jobs of one virtual cluster of Philly, with synthetic models and deadlines",
        paper="D. Gu et al., ASPLOS 2023",
        licence=APACHE,
        repository="pkusys/ElasticFlow",
        commit="04a0109a6acdd7d89f4cb31b6a6a7a128bee6bb0",
        files=(File(path="ElasticFlow/traces_for_ElasticFlow/philly_103959.csv", rows=876, columns=DEADLINES),),
        format="philly-deadlines",
    ),
    TraceSource(
        name="helios",
        about="jobs of SenseTime's Venus cluster, 2020, and its virtual clusters day by day, in one archive: "
        "unpack it and read cluster_log.csv",
        paper="Q. Hu et al., SC 2021",
        licence=CC_BY,
        repository="S-Lab-System-Group/HeliosData",
        commit="159f0caeec16600b9b6017862952a36aae01c43f",
        files=(File(path="data.zip"),),
        format="helios",
    ),
    TraceSource(
        name="helios-summary",
        about="means, medians and outcomes of the jobs of four Helios clusters, to hold a trace against",
        paper="Q. Hu et al., SC 2021",
        licence=MIT,
        repository="S-Lab-System-Group/HeliosArtifact",
        commit="bdaae109c21f8038a2331e6a23a582d5ae78ab5b",
        files=(
            File(
                path="analysis/1_compare with Philly trace/helios_cluster_summary.csv",
                size_bytes=1319,
                rows=5,
                sha256="9cfbef77bdcfab43e0ffbc886e9d8ca8ac0dd16528945c52d76693179a6122f6",
            ),
        ),
    ),
    TraceSource(
        name="helios-earth-machines",
        about="accelerators of each virtual cluster of Earth, day by day",
        paper="Q. Hu et al., SC 2021",
        licence=f"{MIT} (data {CC_BY})",
        repository="S-Lab-System-Group/HeliosArtifact",
        commit="bdaae109c21f8038a2331e6a23a582d5ae78ab5b",
        files=(
            File(path="analysis/2_cluster characterization/Earth_vcs/Earth_gpu_number.csv", columns=("date", "total")),
        ),
        format="daily",
    ),
    TraceSource(
        name="itp",
        about="jobs of ten Microsoft ITP clusters, 2021, as two archives: real ones, and with synthetic "
        "models; no format here reads the archives",
        paper="D. Gu et al., ASPLOS 2023",
        licence=MIT,
        repository="microsoft/elasticflow-traces",
        commit="277ed24d0e908c31a1c98145819e2e3853d8ac00",
        files=(File(path="data/raw-traces.tar.gz"), File(path="data/elasticflow-traces.tar.gz")),
    ),
    TraceSource(
        name="pai-machines",
        about="1,897 machines of Alibaba's PAI, 2020: an archive of one table without header; unpack it, and "
        "write machine,gpu_type,cap_cpu,cap_mem,cap_gpu above it",
        paper="Q. Weng et al., NSDI 2022",
        licence=CC_BY,
        repository="alibaba/clusterdata",
        commit="7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
        files=(
            File(
                path="cluster-trace-gpu-v2020/data/pai_machine_spec.tar.gz",
                size_bytes=30449,
                sha256="cc0d38a4045af1b1af8179de8b1b54b1ddd995e6160d6d061a6b1000f1276c2d",
                large=True,
            ),
        ),
        format="pai",
    ),
    TraceSource(
        name="openb",
        about="8,152 pods, 22 variants of them, and 1,523 machines of Alibaba's openb cluster, 2023",
        paper="Q. Weng et al., USENIX ATC 2023",
        licence=APACHE,
        repository="hkust-adsl/kubernetes-scheduler-simulator",
        commit="8f3d6417353c5083c6d56617f255fadd8dc306bc",
        files=OPENB,
        format="openb",
    ),
    TraceSource(
        name="lingjun",
        about="2,498 jobs of Alibaba's Lingjun cluster, 2023: start, size, duration",
        paper="J. Cao et al., SIGCOMM 2024",
        licence=MIT,
        repository="shuoshuc/RFold",
        commit="b98145539be208ceae371ecaa0464e345c90234b",
        files=(File(path="WorkloadGen/data/crux.csv", rows=2_498, columns=RFOLD),),
        format="rfold",
    ),
    TraceSource(
        name="lingjun-machines",
        about="hosts of Lingjun and the switches above them, 2023",
        paper="J. Cao et al., SIGCOMM 2024",
        licence=APACHE,
        repository="alibaba/alibaba-lingjun-dataset-2023",
        commit="2ad3fd1e2fd16222cc018827fb84f3a3ff220bb9",
        files=(File(path="data/topo.csv", columns=("ip", "DSW", "PSW", "ASW")),),
        format="lingjun",
    ),
    TraceSource(
        name="acme-summary",
        about="means, medians and outcomes of the jobs of Seren, Kalos, Philly, Helios and PAI, to hold a "
        "trace against",
        paper="Q. Hu et al., NSDI 2024",
        licence=CC_BY,
        repository="InternLM/AcmeTrace",
        commit="6d6ac9cd15f3b01151ac6ba00ecddd9156f0dc73",
        files=(
            File(
                path="data/cluster_summary.csv",
                size_bytes=1269,
                rows=5,
                sha256="cde7a7d4ba1596ea165cf4583137d2095020abebbc26b3cd834284c16e8e6ecf",
            ),
        ),
    ),
    TraceSource(
        name="muri",
        about="10,879 jobs of four virtual clusters of Philly, with models drawn at random and measured stage times",
        paper="Y. Zhao et al., SIGCOMM 2022",
        licence=APACHE,
        repository="Rivendile/Muri",
        commit="4e69a78ce75f629a5a00abd48150a1860b341ce6",
        files=MURI,
        format="muri",
    ),
    TraceSource(
        name="pollux",
        about="40 synthetic workloads of 80 to 320 jobs in 8 hours, of six applications",
        paper="A. Qiao et al., OSDI 2021",
        licence=APACHE,
        repository="petuum/adaptdl",
        commit="c793c7089bd307462686339d29707925c461f9a9",
        files=POLLUX,
        format="pollux",
    ),
    TraceSource(
        name="shockwave",
        about="five synthetic traces of 120 to 900 jobs whose batch sizes change in training",
        paper="P. Zheng et al., NSDI 2023",
        licence=MIT,
        repository="uw-mad-dash/shockwave",
        commit="8a44f4a27a45760520386809b695d51b665b3679",
        files=SHOCKWAVE,
        format="shockwave",
    ),
    TraceSource(
        name="tiresias",
        about="60 synthetic jobs, and samples of jobs' accelerator-time",
        paper="J. Gu et al., NSDI 2019",
        licence=APACHE,
        repository="SymbioticLab/Tiresias",
        commit="959f9b08f44fa1b4f2b3aed79b01e4d439264a94",
        files=TIRESIAS,
        format="tiresias",
    ),
    TraceSource(
        name="gavel",
        about="the 20-job test trace of Gavel, and its measured throughputs of three accelerator types",
        paper="D. Narayanan et al., OSDI 2020",
        licence=MIT,
        repository="stanford-futuredata/gavel",
        commit="c4fa40097339e9608ab71fd64c8bdea96a5e4a4c",
        files=GAVEL,
        format="gavel",
    ),
)
