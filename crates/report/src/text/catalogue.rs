//! Every text of every output, in both languages.
//!
//! `{names}` are filled in by the caller; `**` stresses and backticks mark names of metrics, flags and commands.
//! The Chinese uses the words of the report that the project began with: 断崖, 抢占, 驻留, 排队, 重算.

macro_rules! messages {
    ($($name:ident: $en:literal | $zh:literal;)*) => {
        /// A message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Text { $($name,)* }

        impl Text {
            /// All messages.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The message as it stands in the catalogue.
            pub(crate) fn say(self, lang: Lang) -> &'static str {
                match (self, lang) {
                    $((Self::$name, Lang::En) => $en, (Self::$name, Lang::Zh) => $zh,)*
                }
            }
        }
    };
}

use crate::lang::Lang;

messages! {
    // The verdict.
    VerdictWaitedForKv: "{asked} asked, {ran} ran: {waiting} waited for KV cache on average" | "请求并发 {asked}，实际在跑 {ran} 条；平均 {waiting} 条在排队等 KV";
    VerdictWaitedForPlace: "{asked} asked, {ran} ran: {waiting} waited on average though KV cache was free, behind the limit of {limit} sequences"
        | "并发 {asked}，实际只跑了 {ran} 条：KV 还有空，平均 {waiting} 条被 {limit} 的序列上限挡住";
    VerdictWaitedBehindLimit: "{asked} asked, {ran} ran: {waiting} waited on average behind the limit of {limit} sequences" | "并发 {asked}，实际只跑了 {ran} 条：平均 {waiting} 条被 {limit} 的序列上限挡住";
    VerdictWaitedForPrefill: "{asked} asked, {ran} ran: {waiting} waited on average for the prompts before them, KV cache and places being free"
        | "并发 {asked}，平均跑了 {ran} 条：KV 和位置都有空，平均 {waiting} 条在等前面的输入算完";
    VerdictHung: "The engine hung: {completed} of {sent} requests completed, and the queue stood still" | "引擎卡死：{sent} 条请求只完成 {completed} 条，队列一动不动";
    VerdictOpenWaitedBehindLimit: "Served {rate} requests/s with {ran} running; {waiting} waited on average behind the limit of {limit} sequences"
        | "每秒完成 {rate} 条，{ran} 条在跑，平均 {waiting} 条被 {limit} 的序列上限挡住";
    VerdictWaited: "{asked} asked, {ran} ran: {waiting} waited for a place on average" | "并发 {asked}，实际只跑了 {ran} 条：平均 {waiting} 条在排队";
    VerdictOpenWaitedForKv: "Served {rate} requests/s with {ran} running; {waiting} waited for KV cache on average"
        | "每秒完成 {rate} 条，{ran} 条在跑，平均 {waiting} 条在排队等 KV";
    VerdictOpenWaited: "Served {rate} requests/s with {ran} running; {waiting} waited on average" | "每秒完成 {rate} 条，{ran} 条在跑，平均 {waiting} 条在排队";
    VerdictBurst: "Only the first burst waited: {ran} ran on average, {throughput} output tok/s, TTFT p50 {ttft}" | "只有开头的齐发排了队：平均 {ran} 条在跑，输出 {throughput} tok/s，TTFT p50 {ttft}";
    VerdictFlowed: "Nobody waited: {ran} ran on average, {throughput} output tok/s, TTFT p50 {ttft}" | "没有排队：平均 {ran} 条在跑，输出 {throughput} tok/s，TTFT p50 {ttft}";
    VerdictClientOnly: "{completed} of {sent} requests completed: {throughput} output tok/s, TTFT p50 {ttft}; the server exposes no queue metrics"
        | "{sent} 条请求完成 {completed} 条：输出 {throughput} tok/s，TTFT p50 {ttft}；服务端没有给出队列指标";
    VerdictNothing: "No request completed: {sent} sent, {failed} failed ({kind})" | "没有一条请求完成：发出 {sent} 条，失败 {failed} 条（{kind}）";
    VerdictNothingEnded: "No request completed: {sent} sent, none came to its end" | "没有一条请求完成：发出 {sent} 条，都没有跑到结束";
    VerdictInterrupted: "Interrupted after {completed} of {planned} requests. " | "中断：完成了 {planned} 条中的 {completed} 条。";
    VerdictInterruptedOpenEnd: "Interrupted after {completed} requests. " | "中断：完成了 {completed} 条。";
    TerminalFailures: "Failed" | "失败";
    VerdictFailures: "; {failed} of {sent} requests failed" | "；{sent} 条里有 {failed} 条失败";
    BadgeSimulated: "SIMULATED" | "模拟";
    BadgeImported: "IMPORTED" | "导入";
    BadgeInterrupted: "INTERRUPTED" | "中途停止";
    BadgeRecovered: "RECOVERED" | "崩溃后恢复";
    BadgeRunning: "NOT FINISHED" | "未结束";

    // Key figures.
    CardThroughput: "{total} tok/s with prompts, {requests} requests/s" | "连同输入 {total} tok/s，{requests} 条/s";
    CardTtft: "{share} of the mean is queueing ({queue})" | "均值里 {share} 是排队（{queue}）";
    CardMean: "mean {mean}" | "均值 {mean}";
    CardResident: "Resident / asked" | "实际驻留 / 请求并发";
    CardResidentDetail: "peak {peak}; the server's log predicted {logged}" | "峰值 {peak}；启动日志预测 {logged}";
    CardPreemptions: "one every {interval}, at {kv} of the pool" | "每 {interval} 一次，触发于 KV {kv}";
    CardNoPreemption: "the pool was never overrun" | "KV 池没有被压爆";
    CardOversubscription: "demand over the pool; median KV usage {kv}" | "需求 ÷ KV 池；KV 占用中位 {kv}";
    CardItl: "ITL p50 {itl}" | "ITL p50 {itl}";

    // Sections.
    SectionResult: "Result" | "结论";
    SectionDiagnosis: "Diagnosis and remedy" | "诊断与处方";
    SectionCapacity: "Capacity: what the pool can hold" | "超卖：池子装得下多少";
    SectionWaveform: "Timeline of the run" | "波形：全程实况";
    SectionPreemption: "Preemption: a control loop" | "锯齿：抢占是一个负反馈控制环";
    SectionTtft: "Where the time to first token goes" | "排队：TTFT 去了哪里";
    SectionLatency: "Latencies up to the maximum" | "延迟：一直看到尾部";
    SectionRecompute: "Recomputation and the wall clock" | "对账：重算与墙钟去向";
    SectionAudit: "Can these numbers be trusted?" | "自检：这些数字可信吗";
    SectionConfiguration: "Configuration, and how to run it again" | "配置与复现";
    SectionDefinitions: "Definitions, with this run's values" | "术语：每个指标的定义与本轮实测";
    SectionSeries: "Side by side" | "对照：并排放在一起";
    SectionDifferences: "What differs" | "差别在哪里";

    // Words of tables and axes.
    Ttft: "TTFT" | "TTFT 首字延迟";
    Itl: "ITL" | "ITL token 间隔";
    Tpot: "TPOT" | "TPOT 每 token 耗时";
    E2el: "E2EL" | "E2EL 端到端时延";
    ItlPerToken: "ITL per token" | "ITL（按 token 均摊）";
    Lateness: "Sent late by" | "发送迟到";
    TtftMedian: "TTFT p50" | "TTFT p50";
    TtftP50: "TTFT p50" | "TTFT p50";
    ItlP50: "ITL p50" | "ITL p50";
    ItlP90: "ITL p90" | "ITL p90";
    ItlP99: "ITL p99" | "ITL p99";
    E2elP50: "E2EL p50" | "E2EL p50";
    OutputThroughput: "Output throughput" | "输出吞吐";
    TotalThroughput: "Total throughput" | "总吞吐";
    OutputTokPerS: "Output tok/s" | "输出 tok/s";
    TotalTokPerS: "Total tok/s" | "总 tok/s";
    Running: "Running" | "Running 在跑";
    Waiting: "Waiting" | "Waiting 排队";
    RunningComputed: "Running (being computed)" | "Running（正在算）";
    WaitingQueued: "Waiting (in the queue)" | "Waiting（在排队）";
    KvUsage: "KV usage" | "KV 占用";
    Preemption: "Preemption" | "抢占";
    Preemptions: "Preemptions" | "抢占次数";
    PreemptionsSoFar: "Preemptions so far" | "抢占累计";
    PreemptionMoment: "Preemption" | "抢占时刻";
    InFlight: "In flight (client)" | "客户端在飞";
    OutputRate: "Output tokens/s" | "输出 token/s";
    LongestGaps: "Longest gaps" | "最长的间隔";
    GapHover: "gap of %{y:.3s}s, request #%{customdata}" | "间隔 %{y:.3s}s，请求 #%{customdata}";
    Latency: "Latency" | "延迟";
    Samples: "n" | "样本数";
    Mean: "mean" | "均值";
    Median: "median" | "中位数";
    Peak: "peak" | "峰值";
    P50: "p50" | "p50";
    P90: "p90" | "p90";
    P99: "p99" | "p99";
    P999: "p99.9" | "p99.9";
    P9999: "p99.99" | "p99.99";
    Max: "max" | "最大";
    Moment: "Time" | "时刻";
    From: "From" | "从";
    To: "To" | "到";
    Regime: "Regime" | "阶段";
    Gauge: "Gauge" | "指标";
    Quantity: "Quantity" | "项目";
    Value: "Value" | "数值";
    Term: "Metric" | "指标";
    Definition: "What it measures" | "量的是什么";
    ThisRun: "This run" | "本轮实测";
    Kind: "Kind" | "类型";
    Count: "Count" | "次数";
    Meaning: "Meaning" | "含义";
    Part: "Part" | "部分";
    Share: "Share" | "占比";
    Basis: "From" | "来源";
    Measured: "Measured" | "实测";
    WithoutPreemption: "Without preemption" | "无抢占时应为";
    Difference: "Difference" | "差额";
    Ledger: "Ledger" | "账本";
    Counter: "Counter" | "计数器";
    ByClient: "Client" | "客户端";
    ByServer: "Server" | "服务端";
    Theirs: "Theirs" | "原工具";
    Ours: "Ours" | "本工具";
    Run: "Run" | "运行";
    Setting: "Setting" | "设置";
    Request: "Request" | "请求";
    Requests: "Requests" | "请求数";
    RequestCount: "{n} requests" | "{n} 条请求";
    Completed: "Completed" | "完成";
    Released: "Released" | "释放";
    KvBefore: "KV before" | "抢占前 KV";
    KvAfter: "KV after" | "抢占后 KV";
    GapLength: "Gap" | "间隔";
    GapAfter: "After events" | "第几个间隔";
    GapFrom: "Last token" | "上一个 token";
    GapTo: "Next token" | "下一个 token";
    Cause: "Cause" | "原因";
    Engine: "Engine" | "引擎";
    Model: "Model" | "模型";
    Gpu: "GPU" | "GPU";
    Lengths: "Input / output" | "输入 / 输出";
    Load: "Load" | "负载";
    WallClock: "Wall clock" | "用时";
    Url: "URL" | "URL";
    On: "on" | "开";
    Off: "off" | "关";
    AxisTime: "Time since the first request" | "距第一条请求的时间";
    AxisRequests: "Requests" | "请求数";
    AxisKv: "KV usage" | "KV 占用";
    AxisPreemptions: "Preemptions" | "抢占累计";
    AxisGap: "Gap" | "间隔";
    AxisTokenRate: "Output tok/s" | "输出 tok/s";
    AxisPercentile: "Percentile: further right is rarer" | "百分位：越靠右越罕见";
    AxisLatency: "Latency" | "延迟";
    AxisLogTime: "Time (log scale)" | "时间（对数）";

    // Capacity.
    KvPool: "KV pool" | "KV 池";
    KvPoolBytes: "KV pool, bytes" | "KV 池（字节）";
    KvPerToken: "KV per token" | "每 token 的 KV";
    KvDemand: "KV demand" | "KV 需求";
    KvPeak: "KV peak" | "KV 峰值";
    RequestContext: "Context per request" | "单请求上下文";
    RequestBytes: "KV per request at full context" | "单请求满上下文 KV";
    ConcurrencyAsked: "Concurrency asked" | "请求的并发数";
    DemandTokens: "Demand" | "KV 需求";
    DemandBytes: "Demand, bytes" | "KV 需求（字节）";
    DemandOfPool: "Demand / pool" | "KV 需求 ÷ 池";
    Oversubscription: "Oversubscription" | "超卖倍数";
    MaxModelLen: "Longest sequence (`max_model_len`)" | "最长序列（`max_model_len`）";
    LoggedConcurrency: "Logged maximum concurrency" | "日志预测的并发上限";
    FootprintTokens: "Mean footprint of a running request" | "在跑请求的平均占用";
    MeanBatchEstimate: "Estimate: pool / mean footprint" | "估算：KV 池 ÷ 平均占用";
    PreemptionFree: "Free of preemption with 95% confidence" | "95% 把握不抢占的并发";
    SafeBatch: "No preemption possible up to" | "绝不会抢占的并发";
    RunningMean: "Running, mean" | "实际驻留均值";
    RunningPeak: "Running, peak" | "实际驻留峰值";
    WaitingPeak: "Waiting peak" | "Waiting 峰值";
    Asked: "Asked" | "请求的并发数";
    CapacityMissing: "The size of the KV pool is not known for this run: neither the metrics (`vllm:cache_config_info`) nor a server log said it. `--server-log FILE` supplies it."
        | "这次运行不知道 KV 池有多大：`/metrics`（`vllm:cache_config_info`）和服务端日志都没有给出。可用 `--server-log FILE` 补上。";
    CapacityIntro: "A request of {tokens} tokens holds {request} of KV; {concurrency} of them want {demand}, and the pool has {pool}: **oversubscribed {ratio}**."
        | "一条 {tokens} token 的请求要 {request} 的 KV，{concurrency} 条要 {demand}，而 KV 池是 {pool}：**超卖 {ratio}**。";
    LogLines: "The server's own lines:" | "服务端启动日志（一字未改）：";
    LoggedAgainstReal: "The log predicts {logged}; {mean} ran on average ({difference}), because a request reaches its full context only at its end. The pool divided by the mean footprint gives {estimate}."
        | "日志预测 {logged}，实测均值 {mean}（{difference}）：请求刚进来时只占输入的长度，到最后才涨满。按平均占用估算为 {estimate}。";
    DemandCaptionPlain: "Concurrency asked and resident: {asked} asked, {ran} ran on average." | "请求的并发数与实际驻留：请求并发 {asked}，平均在跑 {ran} 条。";
    DemandCaption: "Concurrency asked and resident: {asked} asked, {ran} ran on average. The two bars differ once the pool is full."
        | "请求的并发数与实际驻留：请求并发 {asked}，平均在跑 {ran} 条。两根柱子分开的地方就是 KV 池的边界。";

    // The waveform.
    WaveformCaption: "Running and waiting (left), KV usage and preemptions so far (right); below, the longest gaps between tokens at the moment they ended. The strip on top: the regimes of the run, found from the gauges. Grey: no scrape came back. Drag to zoom; the figures over time follow each other."
        | "Running 与 Waiting（左轴）、KV 占用与抢占累计（右轴）；下方是最长的 token 间隔，画在它结束的时刻。顶上的色带：由指标自动识别的阶段。灰色：没有采到样。拖动可放大，各时间图联动。";
    StackedCaption: "Where the requests are. The lower band is what the machine computes at a time: {running} on average, {share} of all; the rest waits. The dashed line is what the client had in flight."
        | "请求都在哪儿。下面的窄带就是这台机器的产能：平均 {running} 条，占 {share}；其余都在排队。虚线是客户端在飞的请求数。";
    OutputRateCaption: "Output tokens per second by the client's stamps, averaged over {bin}; the run's mean is {mean}." | "按客户端时间戳统计的输出速率，每 {bin} 取平均；全程均值 {mean}。";
    NoScrapes: "There is no timeline: no scrape of the server's metrics came back. `--metrics-url` says where they are." | "没有时间线：没有采到服务端指标。可用 `--metrics-url` 指明地址。";
    KvSentence: "KV usage: median {median}, peak {peak}; above 90% in {above90} of the scrapes, above 95% in {above95}."
        | "KV 占用中位数 {median}，峰值 {peak}；{above90} 的采样点在 90% 以上，{above95} 在 95% 以上。";
    GaugesCaption: "The server's gauges, over the scrapes from the first to the last at which requests were running" | "服务端指标，取第一个到最后一个有请求在跑的采样点";
    GaugesExplained: "{n} scrapes, one every {interval}; {gaps} failed or were missed. What happens between two scrapes is seen by counters only."
        | "共 {n} 个采样点，间隔 {interval}；缺失 {gaps} 个。两次采样之间的事只有计数器看得见。";
    SegmentsCaption: "Regimes of the run, found from the gauges" | "由指标自动识别的阶段";
    SegmentFill: "Fill" | "填充";
    SegmentSawtooth: "Sawtooth" | "锯齿";
    SegmentSteady: "Steady" | "平稳";
    SegmentDrain: "Drain" | "收尾";
    MeanOf: "mean {mean}" | "均值 {mean}";
    ThinnedTable: "{rows} of {points} points, evenly spread" | "从 {points} 个点中均匀取 {rows} 个";

    // Preemption.
    PreemptionsUnknown: "Whether requests were preempted is not known: the server exposes no counter for it." | "有没有抢占无从得知：服务端没有这个计数器。";
    PreemptionsNone: "No request was preempted: KV usage peaked at {peak}." | "没有发生抢占：KV 占用峰值 {peak}。";
    PreemptionsSentence: "**{n} preemptions**, the first after {first}, the last after {last}: one every {interval}. A straight line through the count has R² = {r2}; near 1, preemption is not an accident but part of the steady state."
        | "**{n} 次抢占**，第一次在 {first}，最后一次在 {last}：平均每 {interval} 一次。累计曲线对直线的 R² = {r2}；越接近 1，抢占越不是偶发，而是稳态的一部分。";
    LoopSentence: "The pool fills to {before}, a request is preempted, usage falls by {drop} ({tokens} tokens), decoding fills it again; a cycle takes {period}."
        | "KV 涨到 {before} → 抢占一条 → 回落 {drop}（{tokens} token）→ 继续 decode，再涨回去；一圈约 {period}。";
    SawtoothCaption: "The first cycles: usage climbs to {level}, a request is preempted, usage falls, running drops by one." | "开头几圈放大：占用涨到 {level} 就抢占一条，占用回落，Running 下一个台阶。";
    StaircaseCaption: "The count of preemptions against a straight line (R² = {r2})." | "抢占累计与直线对照（R² = {r2}）。";
    StraightLine: "straight line" | "线性参考";
    TriggerLine: "trigger level {level}" | "触发线 {level}";
    EventsExact: "These are the engine's own events: exact." | "以上是引擎自己的事件，逐条精确。";
    EventsFromCounter: "Read from steps of the server's counter between scrapes: a moment is known to one scrape interval, and {unresolved} preemptions shared an interval with another. vLLM V1 writes no log line for them."
        | "由计数器在两次采样之间的跳变读出：时刻只精确到一个采样间隔，其中 {unresolved} 次与别的抢占落在同一间隔。vLLM V1 不为抢占打任何日志行。";
    EventsReplayed: "Whose request it was is known from the engine's replay of this run." | "是哪条请求，来自引擎对这次运行的重放。";
    MoreEvents: "The other {n}" | "其余 {n} 次";

    // Queueing.
    PartQueue: "Queue" | "排队";
    PartPrefill: "Prefill" | "prefill";
    PartOther: "Rest (front end, network)" | "其余（前端、网络）";
    PartTotal: "TTFT" | "TTFT";
    BasisHistogram: "server's histogram" | "服务端直方图";
    BasisResidual: "residual: TTFT − queue − prefill" | "残差：TTFT − 排队 − prefill";
    BasisClient: "client" | "客户端";
    TtftPartsMissing: "The server has no histograms of queue and prefill time, so TTFT cannot be split for this run." | "服务端没有排队与 prefill 的直方图，这次运行的 TTFT 无法拆分。";
    TtftPartsSentence: "Of a mean TTFT of {total}, **{queue} ({queue_share}) is queueing** and {prefill} ({prefill_share}) is prefill; {other} is left over for the front end and the network."
        | "TTFT 均值 {total}，其中**排队 {queue}（{queue_share}）**，prefill {prefill}（{prefill_share}），剩下 {other} 是前端与网络。";
    TtftPartsCaption: "Parts of the mean TTFT on a log axis: {queue} is queueing, which no faster GPU shortens." | "TTFT 三段分解（对数轴）：{queue} 是排队，换更快的卡也不会变短。";
    BurstSentence: "The first wave, sent all at once, waited {start} on average; requests sent after it {steady}. A percentile over both describes this burst, not a steady state; an arrival rate (`--rate`) measures that."
        | "一次性放出的第一批平均等 {start}，之后的请求平均 {steady}。两者混在一起的百分位描述的是这次突发，不是稳态；要量稳态请用固定到达率（`--rate`）。";
    SectionSteady: "Start, body, drain: does this state last?" | "稳态：这个状态能持续吗";
    SteadyYes: "Steady: {n} requests between start and drain, without a drift that matters" | "稳态：开头与收尾之间的 {n} 条请求没有值得一提的漂移";
    SteadyDrifting: "Not settled: latencies drift over the {n} requests between start and drain" | "没有稳定：开头与收尾之间的 {n} 条请求，延迟一直在漂移";
    SteadyOverloaded: "Overloaded: more and more was in flight while requests arrived" | "过载：到达期间在飞数一路上涨";
    SteadyTooShort: "Too short for a steady state: {n} requests lie between start and drain" | "太短，谈不上稳态：开头与收尾之间只有 {n} 条请求";
    SteadyUnknown: "Whether the run was steady is not known" | "是否稳态无从得知";
    SteadySlopeE2el: "E2EL changes by {slope} per second (95% interval {low} to {high}), {share} of its mean from end to end." | "E2EL 每秒变化 {slope}（95% 区间 {low} 到 {high}），从头到尾是均值的 {share}。";
    SteadySlopeInFlight: "The number in flight changes by {slope} per second (95% interval {low} to {high}), {share} of its mean from end to end." | "在飞数每秒变化 {slope}（95% 区间 {low} 到 {high}），从头到尾是均值的 {share}。";
    SteadyYesMeans: "A longer run of the same load would give these figures again, within their intervals." | "同样的负载跑得更久，也会在区间之内得到这些数。";
    SteadyDriftingMeans: "A longer run would give other figures: read them as those of this stretch." | "跑得更久会得到别的数：只能当作这一段的数来读。";
    SteadyOverloadedMeans: "Latencies depend on how long the test ran, so they do not describe the server: quote the rate that was served, not the percentiles." | "延迟随测试时长一起增长，不是服务端的属性：该引用的是完成速率，不是百分位。";
    SteadyTooShortMeans: "It takes 20 to tell a drift from chance. The latencies here are of a start and an end; more requests, or arrivals at a fixed rate (`--rate`), measure what lasts." | "至少 20 条才能分清漂移和偶然。这里的延迟属于开头和收尾；要量能持续的状态，请增加请求数，或用固定到达率（`--rate`）。";
    SteadyMean: "Mean E2EL of the body: {mean} ± {half} (95%, {n} batch means)." | "中段 E2EL 均值 {mean} ± {half}（95%，{n} 个批均值）。";
    PhasesCaption: "Requests by the part of the run that they belong to" | "请求按所处阶段";
    Phase: "Phase" | "阶段";
    PhaseStart: "Start" | "开头";
    PhaseStartMeans: "the first wave of a closed loop, sent all at once" | "闭环一次性放出的第一批";
    PhaseRamp: "Ramp" | "爬坡";
    PhaseRampMeans: "sent while the load was still being changed" | "负载还在变化时发出";
    PhaseBody: "Body" | "中段";
    PhaseBodyMeans: "what a steady state is looked for in" | "在这里面找稳态";
    PhaseDrain: "Drain" | "收尾";
    PhaseDrainMeans: "still in flight when the last request was sent: the load was falling" | "最后一条发出时还在飞：负载已在下降";
    LittleSentence: "Little's law: {waiting} waiting ÷ {rate} completed per second = {wait}; the server measured {measured}, TTFT p50 is {p50}."
        | "Little 定律核对：平均排队 {waiting} 条 ÷ 完成速率 {rate} 条/s = {wait}；服务端实测 {measured}，TTFT p50 为 {p50}。";
    AreaCaption: "The same requests seen from both ends" | "同一批请求，两头各看一遍";
    AreaClient: "In flight by the client" | "客户端在飞面积";
    AreaServer: "Running + waiting by the server" | "服务端 Running + Waiting 面积";
    AreaMissing: "Missing at the server (a hidden queue if large)" | "服务端看不到的部分（大则有隐藏队列）";
    Requeued: "Waiting again after a preemption, mean" | "被抢占后重新排队，均值";
    HistogramRequests: "Requests in the server's histograms" | "服务端直方图里的请求数";

    // Latencies.
    LatenciesCaption: "All four latencies, each to its largest sample (the last mark). Both axes are logarithmic: a stall that strikes one token in ten thousand is invisible left of p99.99."
        | "四种延迟，一直画到最大样本（末端标记）。两轴都取对数：万分之一的卡顿，在 p99.99 以左看不见。";
    LatencyCaption: "Latencies over completed requests; percentiles by linear interpolation" | "延迟（完成的请求）；百分位按线性插值";
    WeakExplained: "* The sample is too small for this percentile: its 95% interval has no upper end. Read it as \"at least\"." | "* 样本量撑不起这个百分位：95% 区间没有上界，只能读作“至少”。";
    SteadyTitle: "Without start, ramp and drain ({n} requests)" | "去掉开头、爬坡和收尾（{n} 条）";
    SteadyExplained: "Requests of the body of the run only; the first wave of a closed loop measures the initial burst." | "只算中段的请求；闭环的第一批量到的是齐发效应。";
    ServiceTitle: "Counted from sending instead of from the intended time" | "从实际发送算起（而非计划时刻）";
    IntervalsTitle: "95% confidence intervals" | "95% 置信区间";
    IntervalsExplained: "By order statistics where there is one sample per request; by a bootstrap that resamples requests, not tokens, for ITL." | "每条请求一个样本的用次序统计量；ITL 用自助法，按请求（而不是 token）重抽样。";
    GapsCaption: "The longest gaps between tokens" | "最长的 token 间隔";
    GapVisibility: "{preemptions} preemptions among {n} gaps are {share} of them, so `{seen}` is the first percentile that can see them. p99 ({p99}) can't, and a p99 that looks healthy proves nothing about preemption."
        | "{n} 个间隔里只有 {preemptions} 次抢占，占 {share}，要到 `{seen}` 才看得见。p99（{p99}）看不见它们：p99 正常不能说明没有抢占。";
    GapsPlain: "Among {n} gaps the longest is {max}; one gap is {share} of the sample." | "{n} 个间隔里最长的是 {max}；一个间隔占样本的 {share}。";

    // Recomputation.
    RecomputeNone: "Nothing was preempted, so nothing was computed twice." | "没有抢占，也就没有重算。";
    RecomputeMissing: "What was computed twice is not known for this run: that needs an iteration log (`--iterations`), the FLOPs counter (`--enable-mfu-metrics` on vLLM) with the model's shape, or a simulation."
        | "这次运行看不出重算了多少：需要逐步日志（`--iterations`）、FLOPs 计数器（vLLM 的 `--enable-mfu-metrics`）加模型结构，或者模拟。";
    RecomputeSentence: "**{tokens} tokens were computed again**, {each} a preemption: {prefill} on top of the prompts, {clock} of the wall clock (from {basis})."
        | "**重算了 {tokens} token**，每次抢占约 {each}：prefill 多做 {prefill}，占墙钟 {clock}（依据：{basis}）。";
    LedgersCaption: "Three ledgers of the same work" | "同一笔工作的三本账";
    LedgerTokens: "Tokens scheduled" | "调度的 token 账";
    LedgerFlops: "FLOPs" | "FLOPs 算力账";
    LedgerReleased: "KV released at preemptions (upper bound)" | "抢占释放的 KV（上界）";
    BlindCounters: "vLLM's `iteration_tokens_total`, `prompt_tokens_total` and `generation_tokens_total` are blind to recomputation: they count a prompt once, however often it is computed. `estimated_flops_per_gpu_total` sees it."
        | "vLLM 的 `iteration_tokens_total`、`prompt_tokens_total`、`generation_tokens_total` 看不见重算：一条 prompt 无论算几遍都只记一次。`estimated_flops_per_gpu_total` 看得见。";
    LedgerIteration: "`iteration_tokens_total`, the scheduler's token counter" | "`iteration_tokens_total`（调度器的 token 计数器）";
    LedgerPrompt: "`prompt_tokens_total`" | "`prompt_tokens_total`";
    LedgerGeneration: "`generation_tokens_total`" | "`generation_tokens_total`";
    Sees: "Sees recomputation" | "看得见重算";
    SeesYes: "yes" | "看得见";
    SeesNo: "no" | "看不见";
    SeesBound: "upper bound" | "只给上界";
    BySourceTruth: "By the FLOPs alone it is {flops} tokens (between {low} and {high}), {off} off the truth from {basis}."
        | "只用 FLOPs 推算是 {flops} token（{low} 到 {high} 之间），与{basis}给出的真值差 {off}。";
    BySourceFlops: "The excess of FLOPs stands for {flops} tokens; it can't be less than {low} or more than {high}."
        | "FLOPs 差额折合 {flops} token，不会少于 {low}，也不会多于 {high}。";
    ReplaySentence: "The engine played this run again, decision by decision: {steps} tokens scheduled, {preemptions} preemptions. It gives exactly what the server counted ({verified}), so the figure is exact."
        | "引擎把这次运行逐步重放了一遍：调度 {steps} token，抢占 {preemptions} 次，与服务端的计数（{verified}）完全一致，所以这个数是精确的。";
    ReasonsSentence: "What a ledger lacks here: {reasons}." | "有的账本缺数据：{reasons}。";
    DecodeTaken: "A request decoded for {mean} on average; undisturbed it would have been {undisturbed}. **Other requests took {taken}** of it: {prefill} their prefills, {recompute} their recomputation, {preempted} while it was preempted itself."
        | "单条请求的 decode 平均 {mean}，不受打扰只要 {undisturbed}。**被拿走 {taken}**：别人的 prefill {prefill}，别人的重算 {recompute}，自己被抢占的空档 {preempted}。";
    DecodeTakenPlain: "A request decoded for {mean} on average; at the median gap for each token it would have been {undisturbed}: {taken} was taken by others."
        | "单条请求的 decode 平均 {mean}，按 ITL 中位数只要 {undisturbed}：被别人拿走 {taken}。";
    GapCauseCount: "{n} {cause}" | "{cause} {n} 次";
    GapCauses: "Of the {n} longest gaps: {causes}." | "最长的 {n} 个间隔：{causes}。";
    LoopTwice: "Scrapes every {interval} read {level} before and a fall of {fall} ({tokens} tokens); the engine's own events have {exact} and {released} tokens. A gauge is read after the fact, when the others have filled some of it again."
        | "每 {interval} 采样一次，读到抢占前 {level}、回落 {fall}（{tokens} token）；引擎自己的事件是 {exact}、{released} token。指标读得晚，其间别的请求又填回了一部分。";
    LoopRead: "The gauges themselves read {level} before and a fall of {fall} ({tokens} tokens), {interval} apart; what was generated meanwhile is added above."
        | "指标直接读到抢占前 {level}、回落 {fall}（{tokens} token），采样间隔 {interval}；上面已加上其间新生成的 token。";
    LoopUnseen: "What a preemption releases can't be read from scrapes {interval} apart: of {n} preemptions, {unseen} shared their interval with other changes. Sample faster (`--sample-hz`)."
        | "采样间隔 {interval} 太粗，读不出每次抢占释放多少：{n} 次里有 {unseen} 次与别的变化落在同一间隔。请提高采样频率（`--sample-hz`）。";
    ClockDecode: "Decode" | "decode";
    ClockPrefill: "Prefill" | "正常 prefill";
    ClockRecompute: "Recomputation" | "抢占重算";
    ClockIdle: "Idle" | "空闲";
    ClockMissing: "Where the wall clock went is not known: it takes the engine's steps (a simulation, or an iteration log)." | "墙钟去向未知：需要引擎的逐步记录（模拟，或逐步日志）。";
    ClockModelled: "These shares are modelled, not measured." | "以上占比是模型推算，不是实测。";
    ClockModelledBecause: "There are no steps to measure them on: {reason}. vLLM's iteration log has them (`--iterations`)." | "没有逐步记录可以实测：{reason}。vLLM 的逐步日志（`--iterations`）里有。";
    ClockReplayed: "The steps are those of the replay, their times the client's stamps; what a step took beyond a usual step with as many decodes is prefill or recomputation, by tokens."
        | "步骤来自重放，时刻来自客户端的时间戳；一步里超出同样大小纯 decode 步的时间算作 prefill 或重算，按 token 分摊。";
    ClockStepped: "What a step took beyond a usual step with as many decodes is prefill or recomputation, by tokens."
        | "一步里超出同样大小纯 decode 步的时间算作 prefill 或重算，按 token 分摊。";
    WallClockCaptionPlain: "Where the wall clock went." | "墙钟去向。";
    WallClockCaption: "Where the wall clock went; recomputation took {recompute}." | "墙钟去向；重算占 {recompute}。";

    // Outcome.
    NoFailureTitle: "Overload is not failure" | "压爆不等于崩溃";
    NoFailure: "All {completed} requests completed, none failed, and each got the tokens that it asked for ({output})." | "{completed} 条请求全部完成，零失败，输出 token 一个不少（{output}）。";
    NoFailureAskedUnknown: "All {completed} requests completed and none failed, with {output} output tokens; how many were asked for is not recorded." | "{completed} 条请求全部完成，零失败，共 {output} 个输出 token；要求了多少没有记录。";
    Outcome: "{sent} requests were planned: {completed} completed, {failed} failed, {cancelled} were stopped by the end of the run; {retries} retries."
        | "共 {sent} 条请求：完成 {completed}，失败 {failed}，因运行结束而取消 {cancelled}；重试 {retries} 次。";
    OutcomeShort: " {short} completed requests got fewer tokens than they asked for." | " 其中 {short} 条完成的请求少拿了 token。";
    FailuresCaption: "Failures by kind" | "失败类型";
    WithFailures: "{share} of the requests failed. Counted as infinitely slow they move the percentiles; a dash lies among the failures:" | "{share} 的请求失败。把失败算作无穷慢，百分位如下（“—”表示落在失败里）：";
    VoidTitle: "Do not use these results before reading this" | "使用这些结果之前先读这里";
    WarningsTitle: "Read this before quoting a number" | "引用数字之前请注意";
    Evidence: "Evidence: " | "证据：";

    // Audit.
    AuditSends: "Requests were sent late by {p50} (median), {p99} (p99), {max} (maximum)." | "请求发送迟到：中位 {p50}，p99 {p99}，最大 {max}。";
    AuditLoop: "The event loop answered {n} heartbeats, late by {p99} (p99), {max} (maximum)." | "事件循环共 {n} 次心跳，p99 迟到 {p99}，最大 {max}。";
    AuditStalls: "Stalls: {n}, the longest {longest}; gaps at those moments may be the client's." | "卡住 {n} 次，最长 {longest}：那些时刻的间隔可能是客户端自己造成的。";
    AuditNoStall: "It never stalled." | "没有卡住过。";
    AuditCpu: "The client used {share} of {threads} thread(s), {seconds} CPU seconds, {memory} of memory." | "客户端用了 {threads} 个线程的 {share}，{seconds} CPU 秒，内存峰值 {memory}。";
    AuditCoalesced: "{share} of the token events came in one read with others ({reads} reads): their gaps are not observable." | "{share} 的 token 事件与别的事件同一次读到（共 {reads} 次读）：它们之间的间隔无法观测。";
    AuditSimulated: "Nothing was measured: the engine ran in virtual time, so there is no client that could have been late." | "没有真实测量：引擎在虚拟时间里运行，不存在客户端迟到的问题。";
    AuditMissing: "The tool that made this run kept no record of its own delays, so whether the client was the bottleneck is not known." | "产生这次运行的工具没有记录自己的延迟，无法判断瓶颈是否在客户端。";
    CountersCaption: "The client's counts against the server's counters" | "客户端计数与服务端计数器对账";
    ComparisonTitle: "Against {tool}'s own summary: largest difference {largest}" | "与 {tool} 自己的汇总对照：最大差 {largest}";

    // Configuration.
    LoadCaption: "Load" | "负载";
    ServerCaption: "Server" | "服务端";
    LoadKindName: "Kind" | "方式";
    LoadClosed: "closed loop: each client sends when its last request ended" | "闭环：上一条结束才发下一条";
    LoadOpen: "open loop: arrivals do not wait for completions" | "开环：到达不等完成";
    LoadOpenCapped: "open loop with a cap on requests in flight" | "开环，限制在飞数";
    LoadTrace: "arrivals replayed from a file" | "按文件回放到达";
    RateAsked: "Rate" | "到达率";
    RequestsAsked: "Requests planned" | "计划请求数";
    DurationAsked: "Duration planned" | "计划时长";
    WarmupRequests: "Warm-up requests" | "预热请求";
    InputTokens: "Input tokens" | "输入 token";
    OutputTokens: "Output tokens" | "输出 token";
    Endpoint: "Endpoint" | "接口";
    Seed: "Seed" | "随机种子";
    Salt: "Salt of the prompts" | "提示词盐值";
    CacheDtype: "KV data type" | "KV 数据类型";
    MaxNumSeqs: "`--max-num-seqs`" | "`--max-num-seqs`";
    MaxBatchedTokens: "`--max-num-batched-tokens`" | "`--max-num-batched-tokens`";
    PrefixCaching: "Prefix caching" | "前缀缓存";
    ChunkedPrefill: "Chunked prefill" | "分块 prefill";
    Stated: "Not said by the server" | "服务端没有说";
    StatedFlags: "{flags}, as you say" | "{flags}，按你所说";
    AsyncScheduling: "Asynchronous scheduling" | "异步调度";
    OriginSentence: "Imported from {tool} (version {version}): {files}" | "导入自 {tool}（版本 {version}）：{files}";
    PlanTitle: "The whole resolved plan" | "完整的运行计划";
    ReproduceIntro: "The same load again:" | "再跑一次同样的负载：";

    // Definitions.
    RequestLife: "t=0   request sent\n      │  [1] queue      waiting for the scheduler\n      │  [2] prefill    the prompt is computed into the KV cache\n      │  [3] front end  tokenizer, HTTP, network\n ━━━━━┿━ [1]+[2]+[3] = TTFT ━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n      │  first token\n      │  [4] ITL × (n − 1)   gaps between tokens; their mean is TPOT\n ━━━━━┿━ [1]+[2]+[3]+[4] = E2EL ━━━━━━━━━━━━━━━━━━━━━━━━\n"
        | "t=0   发出请求\n      │  [1] 排队      在 waiting 队列里等调度器放行\n      │  [2] prefill   把输入 token 算完，写进 KV 缓存\n      │  [3] 前端      分词、HTTP、网络\n ━━━━━┿━ [1]+[2]+[3] = TTFT 首字延迟 ━━━━━━━━━━━━━━━━━━━\n      │  第 1 个输出 token\n      │  [4] ITL × （n − 1）   相邻 token 的间隔，均值即 TPOT\n ━━━━━┿━ [1]+[2]+[3]+[4] = E2EL 端到端时延 ━━━━━━━━━━━━━\n";
    TtftDefined: "From sending a request to the first event that carries a token: queue, prefill, front end and network." | "从发出请求到收到第一个带 token 的事件：排队 + prefill + 前端与网络。";
    ItlDefined: "Between two consecutive events of a request that carry tokens; one sample per gap, so thousands per request." | "同一请求相邻两个带 token 事件之间的时间；一个间隔一个样本，一条请求有成千上万个。";
    TpotDefined: "(E2EL − TTFT) ÷ (output tokens − 1), one sample per request; not defined for one token." | "(E2EL − TTFT) ÷ (输出 token 数 − 1)，一条请求一个样本；只有 1 个 token 时无定义。";
    E2elDefined: "From sending a request to its last token." | "从发出请求到最后一个 token。";
    OutputThroughputDefined: "Output tokens of the run ÷ its wall clock: what users get. Not 1 ÷ TPOT." | "全部输出 token ÷ 墙钟时间：用户拿到的产能。不是 1 ÷ TPOT。";
    TotalThroughputDefined: "Prompt and output tokens ÷ wall clock: what the GPU handles." | "输入加输出 token ÷ 墙钟时间：GPU 处理的量。";
    RunningDefined: "Requests in the batch, by the server's gauge: the real capacity." | "服务端正在算的请求数：真实的驻留产能。";
    WaitingDefined: "Requests in the queue, by the server's gauge, preempted ones included." | "服务端队列里的请求数，含被抢占后重新排队的。";
    KvUsageDefined: "Share of the KV pool in use." | "KV 池的使用率。";
    PreemptionDefined: "A running request is put back into the queue because the pool is full; its KV is dropped and computed again later." | "KV 池满时把一条在跑的请求退回队列；它的 KV 被丢弃，恢复时要重算。";
    IdentitiesIntro: "Identities, checked on this run:" | "恒等式，用本轮数据核对：";
    IdentityE2el: "E2EL = TTFT + (n − 1) × TPOT holds for each of {n} requests; the largest residual is {residual}." | "E2EL = TTFT + (n − 1) × TPOT 对 {n} 条请求逐条成立，最大残差 {residual}。";
    IdentityThroughput: "{tokens} output tokens ÷ {duration} = {throughput} tok/s." | "{tokens} 个输出 token ÷ {duration} = {throughput} tok/s。";
    IdentityItlApart: "Mean ITL {itl} is {ratio} of the median TPOT {tpot}: they part, so a few gaps are long." | "ITL 均值 {itl} 是 TPOT 中位数 {tpot} 的 {ratio} 倍：两者分开，说明有少数间隔被拖长。";
    IdentityItlEven: "Mean ITL {itl} is {ratio} of the median TPOT {tpot}: they agree, so the load was even." | "ITL 均值 {itl} 是 TPOT 中位数 {tpot} 的 {ratio} 倍：两者一致，负载均匀。";
    IdentityLittle: "Completed per second × mean time in flight is {ratio} of the mean number in flight." | "完成速率 × 平均在飞时间 ÷ 平均在飞数 = {ratio}。";

    // Series.
    SeriesVerdict: "From {most} tok/s ({best}) to {least} tok/s ({worst}): {change} over {n} runs; settings that differ: {settings}" | "从 {most} tok/s（{best}）到 {least} tok/s（{worst}），{change}；{n} 次运行，{settings} 项设置不同";
    SeriesNoThroughput: "{n} runs side by side; too few of them have a throughput to compare" | "{n} 次运行并排；有吞吐数据的不足两次，无法比较";
    SeriesCaption: "KV demand is concurrency × whole context ÷ pool" | "KV 需求 = 并发 × 单请求满上下文 ÷ KV 池";
    PanelThroughput: "Output tok/s" | "输出 token/s";
    PanelItl: "p99 ITL (ms)" | "p99 ITL (ms)";
    PanelPreemptions: "Preemptions" | "抢占次数";
    PanelsCaption: "Each panel has its own scale. Where throughput falls and p99 ITL does not, the cliff is in the queue, not in decoding." | "三个面板各自缩放。如果吞吐下降而 p99 ITL 不变，断崖就在排队上，不在解码上。";
    ResidentsCaption: "Concurrency asked and peak resident; above them, demand as a multiple of the pool (log scale). Beyond 1×, the dotted line, the two bars differ." | "请求的并发与驻留峰值；上方是 KV 需求占池的倍数（对数）。越过 1× 的虚线，两根柱子就分开。";
    CalibrationCaption: "FLOPs per token against the mean context at which a token is computed. The line goes through {n} runs without preemption (R² = {r2}); what lies above it was computed again: {excess}." | "每 token 的 FLOPs 与前向时的平均上下文。直线由 {n} 次零抢占的运行定出（R² = {r2}）；高出直线的就是重算：{excess}。";
    CalibrationExpectedCaption: "FLOPs per token against the mean context at which a token is computed, beside what the model's shape makes it without preemption; what lies above it was computed again: {excess}." | "每 token 的 FLOPs 与前向时的平均上下文，旁边是按模型结构算出的无抢占值；高出的部分就是重算：{excess}。";
    CalibrationNothing: "nothing here" | "这里没有";
    WithoutPreemptionRuns: "Runs without preemption" | "零抢占的运行";
    WithPreemptionRuns: "Runs with preemption" | "有抢占的运行";
    FittedLine: "Line through those without preemption" | "零抢占定的直线";
    ExpectedByShape: "Expected from the model's shape" | "按模型结构应为";
    AxisContext: "Mean context per token" | "平均上下文（token）";
    AxisFlopsPerToken: "GFLOP per token" | "GFLOP / token";
    TtftSeriesCaption: "Parts of the mean TTFT in each run, log scale." | "各次运行的 TTFT 三段分解（对数纵轴）。";
    DiffersNothing: "No setting that the runs record differs: differences between them are noise, or come from something that is not recorded." | "记录下来的设置没有任何不同：差异来自噪声，或来自没有记录的因素。";
    DiffersOne: "One setting differs ({names}), so what differs in the results can be put down to it, within the noise." | "只有一项设置不同（{names}），结果的差异可以归因于它（噪声之内）。";
    DiffersMany: "**{n} settings differ**, so this is not a controlled comparison: no difference in the results can be put down to one of them." | "**有 {n} 项设置不同**，这不是控制变量的对比：结果的差异不能归因于其中任何一项。";

    // Expectations.
    SectionExpectations: "Common expectations, and what happened" | "预期：哪些站得住";
    Expectation: "Expectation" | "常见预期";
    Fate: "Here" | "结果";
    Explanation: "Why" | "说明";
    FateHolds: "holds" | "成立";
    FatePartly: "partly" | "部分";
    FateFails: "does not hold" | "不成立";
    FateUnseen: "cannot be seen" | "看不到";
    ExpectFull: "KV usage goes to 1" | "KV 占用顶到 1.0";
    ExpectFullNote: "As a sawtooth, not as a plateau." | "是一条锯齿，不是顶住不动。";
    ExpectFullPeakNote: "Peak of the gauge." | "指标的峰值。";
    ExpectQueue: "Requests pile up in the queue" | "请求堆积在队列里";
    ExpectQueueNote: "Mean of the waiting gauge." | "Waiting 均值。";
    ExpectPreemptions: "Requests are preempted" | "发生抢占";
    ExpectPreemptionsNote: "By the server's counter." | "以服务端计数器为准。";
    ExpectTail: "p99 ITL spikes" | "p99 ITL 出现尖峰";
    ExpectTailNote: "Preemptions are rarer than one gap in a hundred, so they show beyond p99 and in TTFT." | "抢占比百分之一还稀有，只在 p99 以外和 TTFT 上露头。";
    ExpectTailSeenNote: "Preemptions are at least one gap in a hundred here, so p99 holds them." | "这里抢占至少占间隔的百分之一，p99 里就有它们。";
    ExpectTailFlatNote: "The longest gap is within ten times p99: no stall that a deeper percentile would show." | "最长的间隔不到 p99 的十倍：再深的百分位也没有卡顿可看。";
    ExpectTailUnseenNote: "Gaps or preemptions are not known." | "间隔或抢占未知。";
    ExpectErrors: "Requests fail" | "请求失败";
    ExpectErrorsNote: "Paged attention turns a lack of memory into waiting." | "PagedAttention 把资源不够变成了排队，而不是失败。";
    ExpectErrorsSeenNote: "By kind above; a full pool alone makes requests wait, so look for timeouts and limits." | "种类见上；池子满本身只会让请求排队，要查的是超时和上限。";
    ExpectLog: "The server's log names each preemption" | "服务端日志逐条记录抢占";
    ExpectLogNote: "vLLM V1 writes no such line; only the counter in `/metrics` knows." | "vLLM V1 不打这样的日志行，只有 `/metrics` 里的计数器知道。";

    // Next steps.
    SectionNext: "What this run does not show, and what to try next" | "口径提醒与下一步";
    CaveatSingle: "One run of {n} requests: what another run of the same load would give is not known. Repeat it with other seeds before quoting a difference." | "只有一次运行、{n} 条请求：同样负载再跑一次会差多少并不知道。引用差异之前请换种子重复。";
    CaveatBurst: "A closed loop starts with a burst: those sent first wait least, so the distribution of TTFT follows the order of sending." | "闭环从一次齐发开始：先发的排队短、后发的排队长，TTFT 的分布主要由发压顺序决定。";
    CaveatWaves: "All requests are alike, so those that start together end together and the next wave arrives as one: queue and latencies swing with it, and neighbouring samples are not independent."
        | "所有请求一样长：一起开始就一起结束，下一批又一起到达；排队和延迟随之起伏，相邻样本并不独立。";
    CaveatPercentiles: "These percentiles lie beyond their samples and mean \"at least\": {list}." | "以下百分位超出样本量，只能读作“至少”：{list}。";
    CaveatClocks: "The clocks of client and server are aligned only roughly: a gap and a scrape of the same moment may be apart." | "客户端与服务端的时钟只能粗略对齐：同一时刻的间隔与采样可能错开。";
    CaveatScrapes: "{gaps} scrapes are missing; gauges say nothing about those moments." | "缺了 {gaps} 次采样，那些时刻的指标未知。";
    CaveatSimulated: "Everything here is a prediction of the engine's model, not a measurement." | "以上全部是引擎模型的预测，不是实测。";
    ReplaceIntro: "Before pasting, replace what this run does not say:" | "粘贴之前，请替换这次运行没有记录的部分：";
    ReplaceUrl: "`URL`: the server's address, as in `http://127.0.0.1:8000`" | "`URL`：服务端地址，例如 `http://127.0.0.1:8000`";
    ReplaceModel: "`MODEL`: the model's name in the catalog, or the path of its `config.json` (an unknown name lists the catalog)" | "`MODEL`：模型在目录里的名字，或它的 `config.json` 路径（写一个不存在的名字会列出目录）";
    ReplaceHeader: "`...`: the value of the header, which is not kept" | "`...`：请求头的值（不会记录）";
    ReplaceGpu: "`GPU`: the server's GPU, as in `'RTX 4090'` or `H200` (an unknown name lists the catalog; `import --gpu` records it with the run)" | "`GPU`：服务端的 GPU，例如 `'RTX 4090'` 或 `H200`（写一个不存在的名字会列出目录；导入时用 `import --gpu` 可以随运行记下）";
    TryMaxNumSeqs: "Set the sequence limit to what fits: the pool holds {safe} requests with their whole contexts, and {asked} were asked for. Admitting no more leaves nothing to preempt; this simulates what it costs, beside today's limit." | "把序列上限设成真实容量：池子装得下 {safe} 条满上下文的请求，而并发是 {asked}；不多放，就不用再抢占。用模拟看代价：";
    TryOnServer: "Then compare the simulation with the server itself: the same limits, one after another. restart.sh stands for your own script, which starts the server with the flags it receives (docs/sweep.md has one)." | "再到服务器上逐一验证这些上限。restart.sh 是你自己的脚本：按给定参数重启服务（docs/sweep.md 有样例）：";
    TryPlan: "Ask the planner where the cliff is for this server and this load, and what to set." | "让规划器算出这台服务器、这种负载的断崖在哪里、该怎么设：";
    TryLimit: "Raise the sequence limit to what the pool holds ({safe}), and see what it does to throughput and ITL." | "把序列上限提到池子装得下的 {safe}，看吞吐和 ITL 怎么变：";
    TryQueueCap: "Turn requests away instead of letting them wait: what does a cap on the queue do to TTFT, and how many does it cost?" | "与其让人排队，不如快速失败：队列上限能把 TTFT 压到多少，又要拒掉多少？";
    TryBudget: "Halve the step budget: gaps get shorter, prompts take more steps." | "把每步的 token 预算减半：间隔变短，输入要多算几步：";
    TryCounters: "What was computed again is not known exactly: start the server with its FLOPs counter (vLLM: `--enable-mfu-metrics`) and run again." | "重算了多少还不精确：给服务端打开 FLOPs 计数器（vLLM：`--enable-mfu-metrics`）再跑一次：";
    TryKvPool: "Vary the pool on purpose: does throughput follow the residents, and does the frequency of preemption depend on the pool?" | "把 KV 池做成自变量：吞吐跟不跟驻留数走，抢占频率与池大小有没有关系？";
    TryRate: "Measure a steady state: arrivals at {rate}/s, a tenth below what was completed." | "量稳态：以 {rate} 条/s 到达，比完成速率低一成。";

    // The page and the terminal.
    Contents: "Contents" | "目录";
    DataTable: "Data as a table" | "以表格查看数据";
    Table: "Table" | "表格";
    WeakTitle: "the sample is too small for this percentile" | "样本量不足以支撑这个百分位";
    NoScript: "The figures need JavaScript; the tables hold the same data." | "图表需要 JavaScript；表格里有同样的数据。";
    Footer: "Made by Precipice {version}. Works offline; nothing was loaded from the network." | "由 Precipice {version} 生成。离线可用，没有从网络加载任何内容。";
    TerminalSteady: "Steady state" | "稳态";
    TerminalGaps: "Longest gaps" | "最长间隔";
    TerminalGap: "{ms} at {at} (#{request})" | "{ms}@{at}(#{request})";
    TerminalPreemptions: "{n}, one every {interval} from {first} to {last}; KV {before} before, {drop} released ({tokens} tok)" | "{n} 次，{first} 到 {last} 每 {interval} 一次；抢占前 KV {before}，释放 {drop}（{tokens} tok）";
    TerminalCapacity: "pool {pool}, demand {demand} ({ratio}); log predicts {logged}, estimate {estimate}" | "KV 池 {pool}，需求 {demand}（{ratio}）；日志预测 {logged}，估算 {estimate}";
    Warning: "Warning" | "警告";
    Server: "Server" | "服务端";
    Above90: "> 90 %" | "> 90 %";
    Capacity: "Capacity" | "容量";
    Diagnosis: "Diagnosis" | "诊断";
    Remedy: "Remedy" | "处方";
}
