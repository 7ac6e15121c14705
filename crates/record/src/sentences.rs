//! The sentences of every warning, in English and Chinese.
//!
//! A warning is said in one or more sentences; of each, the first wording of which all figures are known is used, and a
//! sentence without one is left out. The first sentence always has a wording for what every producer gives.

use crate::WarningCode;
use precipice_wording::{Wording, wording};

/// Alternatives of one sentence.
type Sentence = &'static [Wording];

impl WarningCode {
    /// Its sentences; none of a code of another version, whose warnings carry their own text.
    pub const fn sentences(self) -> &'static [Sentence] {
        match self {
            // The load generator and its machine.
            Self::ClientBottleneck => CLIENT_BOTTLENECK,
            Self::ClientStall => CLIENT_STALL,
            Self::ClockStepped => CLOCK_STEPPED,
            Self::CoalescedReads => COALESCED_READS,
            Self::EventsAndTokensDiffer => EVENTS_AND_TOKENS_DIFFER,
            Self::EventsWithoutRequest => EVENTS_WITHOUT_REQUEST,
            Self::FewOpenFiles => FEW_OPEN_FILES,
            Self::LateSends => LATE_SENDS,
            Self::LocalFailures => LOCAL_FAILURES,
            Self::PercentileBeyondSample => PERCENTILE_BEYOND_SAMPLE,
            Self::ProxyUnused => PROXY_UNUSED,
            Self::Recovered => RECOVERED,
            Self::SlowSink => SLOW_SINK,
            Self::StaleConnections => STALE_CONNECTIONS,
            // What the server does with a request, against what was asked.
            Self::IgnoreEosRefused => IGNORE_EOS_REFUSED,
            Self::NoModelList => NO_MODEL_LIST,
            Self::NotStreamed => NOT_STREAMED,
            Self::NoUsage => NO_USAGE,
            Self::OutputsLonger => OUTPUTS_LONGER,
            Self::OutputsShorter => OUTPUTS_SHORTER,
            Self::PromptsCut => PROMPTS_CUT,
            Self::TextPrompts => TEXT_PROMPTS,
            Self::UsageContradicts => USAGE_CONTRADICTS,
            // What the server exposes.
            Self::CounterReset => COUNTER_RESET,
            Self::HiddenQueue => HIDDEN_QUEUE,
            Self::NoMetrics => NO_METRICS,
            Self::OtherTraffic => OTHER_TRAFFIC,
            Self::PreemptionsUnresolved => PREEMPTIONS_UNRESOLVED,
            Self::ScrapeGaps => SCRAPE_GAPS,
            Self::SeriesLeftOut => SERIES_LEFT_OUT,
            Self::TokenMismatch => TOKEN_MISMATCH,
            // Files of other tools.
            Self::BundledChunks => BUNDLED_CHUNKS,
            Self::ClocksRoughlyAligned => CLOCKS_ROUGHLY_ALIGNED,
            Self::IterationsNotPlaced => ITERATIONS_NOT_PLACED,
            Self::IterationsUncertain => ITERATIONS_UNCERTAIN,
            Self::SummaryOnly => SUMMARY_ONLY,
            // The simulated engine, and what a plan assumes.
            Self::EngineNotExact => ENGINE_NOT_EXACT,
            Self::EngineHang => ENGINE_HANG,
            Self::GuessedPromptTokens => GUESSED_PROMPT_TOKENS,
            Self::KvBytesDiffer => KV_BYTES_DIFFER,
            Self::LimitsAssumed => LIMITS_ASSUMED,
            Self::PoolExceedsGpu => POOL_EXCEEDS_GPU,
            Self::ProfileExtrapolated => PROFILE_EXTRAPOLATED,
            Self::SlidingWindow => SLIDING_WINDOW,
            Self::Unknown => &[],
        }
    }
}

// The load generator and its machine.

const CLIENT_BOTTLENECK: &[Sentence] = &[&[wording(
    "The client was short of CPU time, so latencies may be its own and not the server's. Give it more cores (--client-threads), or lower the load.",
    "客户端 CPU 不够用，延迟可能是客户端自己造成的。请多给几个核（`--client-threads`），或降低负载。",
)]];

const CLIENT_STALL: &[Sentence] = &[&[
    wording(
        "The client itself stood still {count} times for {stall_ms} or more (longest {longest_ms} at {longest_at_s}); gaps between tokens at those times are its own.",
        "客户端自己卡住 {count} 次，每次 {stall_ms} 以上（最长 {longest_ms}，在 {longest_at_s}）：那些时刻的间隔不是服务端造成的。",
    ),
    wording(
        "The client itself stood still {count} times (longest {longest_ms} at {longest_at_s}); gaps between tokens at those times are its own.",
        "客户端自己卡住 {count} 次（最长 {longest_ms}，在 {longest_at_s}）：那些时刻的间隔不是服务端造成的。",
    ),
]];

const CLOCK_STEPPED: &[Sentence] = &[&[wording(
    "The wall clock was set by {skew_ms} during the run. Times within the run are not touched; comparing them with the server's log is.",
    "运行中系统时钟被调了 {skew_ms}。运行内部的时间不受影响，但与服务端日志对照时要注意。",
)]];

const COALESCED_READS: &[Sentence] = &[&[wording(
    "{coalesced_share} of the token events came in one socket read with others: the gaps between them are not observable and count as 0; read ITL percentiles below p99 with care.",
    "{coalesced_share} 的 token 事件与别的事件同一次读到：它们之间的间隔无从观察，按零计；p99 以下的 ITL 分位数要小心看。",
)]];

const EVENTS_AND_TOKENS_DIFFER: &[Sentence] = &[&[wording(
    "In {count} of {of} requests the events that carried tokens are not as many as the tokens in the server's usage: gaps are between events there, not between tokens.",
    "{of} 条请求里有 {count} 条，带 token 的事件数与服务端 usage 的 token 数不一致：那里的间隔是事件之间的，不是 token 之间的。",
)]];

const EVENTS_WITHOUT_REQUEST: &[Sentence] = &[&[wording(
    "{events} token events belong to attempts that have no row (the run was cut off); they are left out.",
    "{events} 个 token 事件属于没有记录行的请求（运行被中断），没有计入。",
)]];

const FEW_OPEN_FILES: &[Sentence] = &[&[wording(
    "The load is an open loop of {requests} requests and this machine lets a process open {limit} files: beyond that many at once requests fail in the client. Cap them with --max-in-flight, or raise the limit (ulimit -n).",
    "负载是开环的 {requests} 条请求，而本机一个进程最多打开 {limit} 个文件：同时在飞超过这个数，请求会在客户端失败。用 `--max-in-flight` 限制，或提高上限（`ulimit -n`）。",
)]];

const LATE_SENDS: &[Sentence] = &[&[wording(
    "1% of the requests were sent {send_late_p99_ms} or more after their time: the load was not the one that was asked for. Latencies from the intended time include this wait.",
    "1% 的请求迟到 {send_late_p99_ms} 以上才发出：实际负载不是所要求的负载。从计划时刻算起的延迟包含这段等待。",
)]];

const LOCAL_FAILURES: &[Sentence] = &[&[wording(
    "{count} requests failed in this machine, which ran out of ports or open files: that says nothing about the server. Raise the limit (ulimit -n), or use fewer connections.",
    "{count} 条请求失败在本机：端口或文件描述符耗尽，与服务端无关。请提高上限（`ulimit -n`），或减少连接。",
)]];

const PERCENTILE_BEYOND_SAMPLE: &[Sentence] = &[&[wording(
    "{metric}: {n} samples are too few for {percentiles}; read them as \"at least\". An upper bound of the first needs {needed} samples.",
    "{metric}：{n} 个样本撑不起 {percentiles}，只能读作“至少”；其中第一个至少要 {needed} 个样本才有上界。",
)]];

const PROXY_UNUSED: &[Sentence] = &[&[wording(
    "{variable} is set and not used: a proxy would be measured along with the server. The server was reached directly.",
    "设置了环境变量 `{variable}` 但没有使用：代理会被一起测进去。请求直接发给了服务端。",
)]];

const RECOVERED: &[Sentence] = &[&[wording(
    "The process that measured was killed: up to the last second is missing, and requests that were in flight have chunks but no row.",
    "测量进程被杀：最多缺最后一秒；当时在飞的请求有 token 记录但没有结果行。",
)]];

const SLOW_SINK: &[Sentence] = &[&[wording(
    "The disk could not take the rows as fast as they came; they waited in memory. Write the run to a faster disk.",
    "磁盘写不过来，数据曾在内存里排队。请把结果写到更快的磁盘。",
)]];

const STALE_CONNECTIONS: &[Sentence] = &[&[wording(
    "{count} requests met a kept connection that the server had closed while it was idle, and were sent again on a new one; none of them counts as a failure.",
    "{count} 条请求碰上服务端已关闭的空闲连接，换新连接重发了，都不算失败。",
)]];

// What the server does with a request, against what was asked.

const IGNORE_EOS_REFUSED: &[Sentence] = &[&[wording(
    "The server does not know ignore_eos, so outputs may be shorter than planned.",
    "服务端不接受 `ignore_eos`，输出长度可能比计划的短。",
)]];

const NO_MODEL_LIST: &[Sentence] = &[&[
    wording(
        "The server does not list its models (it answered {answer}), so the model's name and its window could not be checked.",
        "服务端不列出它的模型（它的回答：{answer}），模型名和窗口长度无法核对。",
    ),
    wording(
        "The server does not list its models, so the model's name and its window could not be checked.",
        "服务端不列出它的模型，模型名和窗口长度无法核对。",
    ),
]];

const NOT_STREAMED: &[Sentence] = &[&[wording(
    "In {count} of {of} requests the response was not streamed but one JSON, although a stream was asked for: tokens are counted, TTFT and ITL cannot be known.",
    "{of} 条请求里有 {count} 条要的是流，收到的却是一整个 JSON：token 能数，TTFT 和 ITL 无从得知。",
)]];

const NO_USAGE: &[Sentence] = &[&[wording(
    "The server sends no usage with its streams, so token counts are the client's own: one for each event.",
    "服务端的流里没有 usage，token 数以客户端计数为准：每个事件算一个。",
)]];

const OUTPUTS_LONGER: &[Sentence] = &[&[wording(
    "In {count} of {of} requests the output is longer than max_tokens: the server does not honour it, or does not count all that it gives; the load was heavier than planned.",
    "{of} 条请求里有 {count} 条的输出比 `max_tokens` 还长：服务端没有遵守它，或没有把全部输出计入；实际负载比计划的重。",
)]];

const OUTPUTS_SHORTER: &[Sentence] = &[&[wording(
    "In {count} of {of} requests the output is shorter than was forced: the server takes ignore_eos and does not honour it, or its window ended; the load was lighter than planned.",
    "{of} 条请求里有 {count} 条的输出比强制的短：服务端接受 `ignore_eos` 却没有照做，或窗口到头了；实际负载比计划的轻。",
)]];

const PROMPTS_CUT: &[Sentence] = &[&[wording(
    "In {count} of {of} requests the server counts fewer prompt tokens than were sent: it cut the prompt (a window such as num_ctx) without a word; the load was lighter than planned.",
    "{of} 条请求里有 {count} 条，服务端数到的 prompt token 比发出的少：它悄悄截断了 prompt（比如 num_ctx 窗口）；实际负载比计划的轻。",
)]];

const TEXT_PROMPTS: &[Sentence] = &[&[wording(
    "The server takes no token ids, so prompts are words: their lengths are near what was asked, and exact only in the server's usage.",
    "服务端不接受 token id，提示词以文本发送：长度与要求的略有出入，以服务端的 usage 为准。",
)]];

const USAGE_CONTRADICTS: &[Sentence] = &[&[wording(
    "In {count} of {of} requests the server's usage says 0 tokens beside events that carried some: that usage is no count, and each event counts as one token.",
    "{of} 条请求里有 {count} 条的 usage 是 0，事件里却有 token：这个 usage 不作数，每个事件按一个 token 计。",
)]];

// What the server exposes.

const COUNTER_RESET: &[Sentence] = &[&[wording(
    "A counter of the server fell at {at_s} ({series}): it was restarted, or several servers answer at one metrics URL (then give each replica's own with --metrics-url). What it had counted since the last scrape is lost.",
    "服务端计数器在 {at_s} 回落（{series}）：服务端重启过，或者同一个指标地址后面有多个实例（请用 `--metrics-url` 逐个指明）。上次采样之后的计数已丢失。",
)]];

const HIDDEN_QUEUE: &[Sentence] = &[&[wording(
    "On average {client_in_flight_mean} requests were in flight and the server counted {server_in_flight_mean} of them: the rest ({missing_share}) neither ran nor waited there. Something between holds them (a connection limit, a proxy, the front end).",
    "客户端平均有 {client_in_flight_mean} 条在飞，服务端只数到 {server_in_flight_mean} 条：其余的（{missing_share}）排在没有指标的地方（连接数上限、代理、服务端前端）。",
)]];

const NO_METRICS: &[Sentence] = &[&[
    wording(
        "The server's metrics could not be read at {url} ({error}); the run has the client's side alone. --metrics-url names another place; vLLM exports them by itself, llama.cpp with --metrics, SGLang with --enable-metrics.",
        "在 {url} 读不到服务端指标（{error}）：这次运行只有客户端一侧的数据。可用 `--metrics-url` 指明别的地址；vLLM 默认导出，llama.cpp 要加 `--metrics`，SGLang 要加 `--enable-metrics`。",
    ),
    wording(
        "There are no metrics of the server (the first scrape: {error}): nothing is known of its batch, its queue or its KV pool; give --metrics-url (or --metrics when importing).",
        "没有服务端指标（第一次采样：{error}）：它的批、队列和 KV 池都无从得知。请用 `--metrics-url` 指明地址（导入时用 `--metrics`）。",
    ),
    wording(
        "There are no metrics of the server: nothing is known of its batch, its queue or its KV pool; give --metrics-url (or --metrics when importing).",
        "没有服务端指标：它的批、队列和 KV 池都无从得知。请用 `--metrics-url` 指明地址（导入时用 `--metrics`）。",
    ),
]];

const OTHER_TRAFFIC: &[Sentence] = &[
    &[wording(
        "The server had requests that were not this run's, so its gauges and counters describe both. Measure on a server of its own.",
        "服务端还有别的流量，它的指标描述的是两者之和。请在独占的服务端上测。",
    )],
    &[wording(
        "Before the load {in_flight_before} of others were there.",
        "负载开始前那里已有别人的 {in_flight_before} 条。",
    )],
    &[wording(
        "The server finished {server_requests} requests and this run sent {own_requests}.",
        "服务端完成了 {server_requests} 条请求，这次运行发出 {own_requests} 条。",
    )],
    &[wording(
        "It held {beyond_share} more than this run had in flight.",
        "它手上的请求比这次运行在飞的多 {beyond_share}。",
    )],
];

const PREEMPTIONS_UNRESOLVED: &[Sentence] = &[&[wording(
    "{preemptions} preemptions shared a scrape interval with another: their own moments and KV levels are not known; sample faster (--sample-hz).",
    "{preemptions} 次抢占与别的抢占落在同一个采样间隔里：各自的时刻和 KV 占用无从得知。请提高采样频率（`--sample-hz`）。",
)]];

const SCRAPE_GAPS: &[Sentence] = &[
    &[wording(
        "The longest stretch without a scrape is {longest_s}; nothing is known of the server in it.",
        "最长 {longest_s} 没有采样：其间服务端发生了什么无从得知。",
    )],
    &[
        wording(
            "{gaps} scrapes failed or were missed (the first: {error}).",
            "有 {gaps} 次采样失败或缺失（第一次：{error}）。",
        ),
        wording("{gaps} scrapes failed or were missed.", "有 {gaps} 次采样失败或缺失。"),
    ],
];

const SERIES_LEFT_OUT: &[Sentence] = &[&[wording(
    "A source of metrics has too many series: {left_out} were left out (at most {kept} are kept of each).",
    "指标页的序列太多：{left_out} 个没有保留（每个来源最多 {kept} 个）。",
)]];

const TOKEN_MISMATCH: &[Sentence] = &[&[
    wording(
        "{counter}: the server counted {server}, this client {client}, {server_more} fewer: others used the server, or it worked for requests that this client gave up.",
        "{counter}：服务端计 {server}，客户端计 {client}，少 {server_more}：有别人在用服务端，或它还在处理客户端已放弃的请求。",
    ),
    wording(
        "{counter}: the server counted {server}, this client {client}, {client_more} more: the server's counters came late or do not count everything.",
        "{counter}：服务端计 {server}，客户端计 {client}，多 {client_more}：服务端的计数器来得晚，或没有全部计入。",
    ),
    wording(
        "{counter}: the server counted {server}, this client {client}.",
        "{counter}：服务端计 {server}，客户端计 {client}。",
    ),
]];

// Files of other tools.

const BUNDLED_CHUNKS: &[Sentence] = &[&[wording(
    "In {requests} requests some events carried several tokens and the tool does not save how many: gaps there are between events, not tokens.",
    "{requests} 条请求里有些事件一次带多个 token，而原工具没有保存个数：这些请求的间隔是事件之间的，不是 token 之间的。",
)]];

const CLOCKS_ROUGHLY_ALIGNED: &[Sentence] = &[&[wording(
    "The clocks of client and scrapes were aligned by {basis}, to about {residual_ms}: don't compare their times more closely than that.",
    "客户端与采样的时钟只能粗略对齐（依据：{basis}；误差约 {residual_ms}）：比这更细的时刻不要对照。",
)]];

const ITERATIONS_UNCERTAIN: &[Sentence] = &[&[wording(
    "The log has whole seconds, and no counter of iterations was scraped: {iterations} iterations of the first and last second may not be of this run.",
    "日志的时刻只到秒，又没有迭代计数的采样：首尾两秒里的 {iterations} 步可能不属于这次运行。",
)]];

const SUMMARY_ONLY: &[Sentence] = &[&[wording(
    "The result was saved without its requests: the tool's own figures stand in the comparison and cannot be checked. Save it with --save-detailed.",
    "这份结果没有保存逐条请求：对照表里是原工具自己的数字，无法核对。请加 `--save-detailed` 保存。",
)]];

const ITERATIONS_NOT_PLACED: &[Sentence] = &[&[wording(
    "The iterations were left out: give the scrapes of the run with --metrics, which say which part of the server's life it was.",
    "逐步日志没有用上：请用 `--metrics` 给出这次运行的采样，才能知道它在服务端生命里的位置。",
)]];

// The simulated engine, and what a plan assumes.

const ENGINE_NOT_EXACT: &[Sentence] = &[&[wording(
    "The engine is not exact here ({features}): its decisions were not compared with those of the real scheduler; docs/engine.md lists what was.",
    "引擎的调度在这里不精确（{features}）：没有与真实调度器逐步比对过；比对过的见 docs/engine.md。",
)]];

const ENGINE_HANG: &[Sentence] = &[&[
    wording(
        "The engine hung: a prompt of {prompt_beyond_budget} tokens is longer than --max-num-batched-tokens and chunked prefill is off, so it is never admitted and blocks the queue.",
        "引擎卡死：一条 {prompt_beyond_budget} token 的输入超过 `--max-num-batched-tokens`，而分块 prefill 关着：它永远放不进来，堵住了队列。",
    ),
    wording(
        "The engine hung: a prompt of {prompt_fills_window} tokens fills --max-model-len and was computed in chunks, so its last token is never scheduled.",
        "引擎卡死：一条 {prompt_fills_window} token 的输入占满 `--max-model-len`，又是分块计算的：它的最后一个 token 永远不会被调度。",
    ),
    wording(
        "The engine hung: a request of {tokens} tokens needs {blocks} KV blocks and the pool has {usable_blocks} (the null block is not usable), so it is never admitted and blocks the queue; give the pool more blocks or lower --max-model-len.",
        "引擎卡死：一条 {tokens} token 的请求要 {blocks} 个 KV 块，池子只有 {usable_blocks} 个（空块不能用）：它永远放不进来，堵住了队列。请给池子更多块，或降低 `--max-model-len`。",
    ),
]];

const GUESSED_PROMPT_TOKENS: &[Sentence] = &[&[wording(
    "{requests} prompts are texts: their token counts were guessed at four bytes per token, and equal beginnings are not found in the prefix cache.",
    "{requests} 条提示词是文本：token 数按每 4 字节一个估算，相同的开头也不会命中前缀缓存。",
)]];

const KV_BYTES_DIFFER: &[Sentence] = &[&[wording(
    "By the server's own figures a token takes {told_kib} KiB of KV on a GPU, by the model's shape {due_kib} KiB: is it served in another type (--dtype, also through --hf-overrides), on several GPUs (--tensor-parallel-size), or is it another model?",
    "按服务端自己的数字，每 token 在一块 GPU 上占 {told_kib} KiB KV；按模型结构是 {due_kib} KiB：是换了精度（`--dtype`，或经 `--hf-overrides`）、用了多块 GPU（`--tensor-parallel-size`），还是别的模型？",
)]];

const LIMITS_ASSUMED: &[Sentence] = &[&[wording(
    "The server does not say all of its limits; assumed, as the default of its GPU or profile: {settings}. Give what it was started with, or its log with --server-log.",
    "服务端没有说全它的上限，这里按 GPU 或 profile 的默认值假定：{settings}。请给出启动时的参数，或用 `--server-log` 给出日志。",
)]];

const POOL_EXCEEDS_GPU: &[Sentence] = &[&[wording(
    "{pool_gb} GB of KV and {weights_gb} GB of weights are more than the {memory_gb} GB of a {gpu}: is it another GPU, or are there several (--tensor-parallel-size)?",
    "KV {pool_gb} GB 加权重 {weights_gb} GB 超过一块 {gpu} 的 {memory_gb} GB：是别的 GPU，还是有好几块（`--tensor-parallel-size`）？",
)]];

const PROFILE_EXTRAPOLATED: &[Sentence] = &[&[wording(
    "Profile \"{profile}\" was fitted with {basis} up to {fitted_max}; {steps} of {of} steps went beyond, up to {largest}: calibrate with a load that reaches there.",
    "步时模型“{profile}”拟合时 {basis} 最大到 {fitted_max}；{of} 步里有 {steps} 步超出，最大 {largest}：请用到得了那里的负载校准。",
)]];

const SLIDING_WINDOW: &[Sentence] = &[&[wording(
    "Some layers keep no more than a window of tokens; the pool is counted as if all layers kept everything, so more requests may fit.",
    "部分层只保留一个窗口内的 token；这里按所有层都保留全部来算 KV 池，实际能装的可能更多。",
)]];
