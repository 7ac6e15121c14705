//! Texts of what is named by a code elsewhere.
//!
//! English comes with the finding; Chinese is here, filled from the finding's evidence. A code without a
//! translation, or a translation that lacks a figure, falls back to the English sentence.

use crate::document::Line;
use crate::lang::Lang;
use precipice_analyze::findings::{Basis, Cause, Reason, Reproduced};
use precipice_record::{FailureKind, Warning, WarningCode};
use precipice_wording::evidence::write;
use precipice_wording::template::names;
use serde_json::Value;
use std::collections::BTreeMap;

/// A warning in Chinese; nothing for one that this version does not know.
fn chinese(code: WarningCode) -> Option<&'static str> {
    Some(match code {
        WarningCode::ClientBottleneck => {
            "客户端 CPU 不够用，延迟可能是客户端自己造成的。请多给几个核（`--client-threads`），或降低负载。"
        }
        WarningCode::ClientStall => {
            "客户端自己卡住 {count} 次（最长 {longest_ms}，在 {longest_at_s}）：那些时刻的间隔不是服务端造成的。"
        }
        WarningCode::ClockStepped => {
            "运行中系统时钟被调了 {skew_ms}。运行内部的时间不受影响，但与服务端日志对照时要注意。"
        }
        WarningCode::CoalescedReads => {
            "有相当一部分 token 事件与别的事件同一次读到，间隔显示为零：服务端或代理攒批发送，或者客户端读得晚。"
        }
        WarningCode::CounterReset => {
            "服务端计数器在 {at_s} 回落：服务端重启过，或者同一个指标地址后面有多个实例。请用 `--metrics-url` 逐个指明。"
        }
        WarningCode::EventsAndTokensDiffer => {
            "{count} 条请求里带 token 的事件数与服务端 usage 的 token 数不一致：那里的间隔是事件之间的，不是 token 之间的。"
        }
        WarningCode::EventsWithoutRequest => {
            "{events} 个 token 事件属于没有记录行的请求（运行被中断），没有计入。"
        }
        WarningCode::HiddenQueue => {
            "客户端平均有 {client_in_flight_mean} 条在飞，服务端只数到 {server_in_flight_mean} 条：其余的排在没有指标的地方（代理、服务端前端、连接数上限）。"
        }
        WarningCode::LateSends => {
            "1% 的请求迟到 {send_late_p99_ms} 以上才发出：实际负载不是所要求的负载。从计划时刻算起的延迟包含这段等待。"
        }
        WarningCode::OtherTraffic => "服务端还有别的流量，它的指标描述的是两者之和。请在独占的服务端上测。",
        WarningCode::PercentileBeyondSample => {
            "{metric}：{n} 个样本撑不起 {percentiles}，只能读作“至少”；至少要 {needed} 个样本才有上界。"
        }
        WarningCode::Recovered => "测量进程被杀：最多缺最后一秒；当时在飞的请求有 token 记录但没有结果行。",
        WarningCode::ScrapeGaps => {
            "有 {gaps} 次采样缺失，最长 {longest_s} 没有采样：其间服务端发生了什么无从得知。"
        }
        WarningCode::SlowSink => "磁盘写不过来，数据曾在内存里排队。请把结果写到更快的磁盘。",
        WarningCode::StaleConnections => {
            "{count} 条请求碰上服务端已关闭的空闲连接，换新连接重发了，都不算失败。"
        }
        WarningCode::TokenMismatch => "客户端计数与服务端计数器对不上，见自检一节的对账表。",
        WarningCode::BundledChunks => {
            "有些事件一次带多个 token，而原工具没有保存个数：这些请求的间隔是事件之间的，不是 token 之间的。"
        }
        WarningCode::SummaryOnly => {
            "这份结果没有保存逐条请求：对照表里是原工具自己的数字，无法核对。请加 `--save-detailed` 保存。"
        }
        WarningCode::ClocksRoughlyAligned => "两边时钟只能粗略对齐，服务端采样的时刻可能有偏差。",
        WarningCode::EngineNotExact => "引擎的调度在这里不精确（{features}）：没有与真实调度器逐步比对过。",
        WarningCode::EngineHang => "引擎卡死：有请求永远放不进 KV 池。",
        WarningCode::GuessedPromptTokens => {
            "有些提示词是文本：token 数按每 4 字节一个估算，相同的开头也不会命中前缀缓存。"
        }
        WarningCode::IgnoreEosRefused => "服务端不接受 `ignore_eos`，输出长度可能比要求的短。",
        WarningCode::IterationsNotPlaced => {
            "逐步日志没有用上：请用 `--metrics` 给出这次运行的采样，才能知道它在服务端生命里的位置。"
        }
        WarningCode::FewOpenFiles => {
            "负载是开环的 {requests} 条请求，而本机一个进程最多打开 {limit} 个文件：同时在飞超过这个数，请求会在客户端失败。用 `--max-in-flight` 限制，或提高上限（`ulimit -n`）。"
        }
        WarningCode::SeriesLeftOut => "指标页的序列太多：{left_out} 个没有保留（每个来源最多 {kept} 个）。",
        WarningCode::LocalFailures
        | WarningCode::NotStreamed
        | WarningCode::OutputsLonger
        | WarningCode::OutputsShorter
        | WarningCode::PromptsCut
        | WarningCode::UsageContradicts => return against_the_plan(code),
        WarningCode::ProxyUnused => {
            "设置了环境变量 `{variable}` 但没有使用：代理会被一起测进去。请求直接发给了服务端。"
        }
        WarningCode::IterationsUncertain => {
            "日志的时刻只到秒，又没有迭代计数的采样：首尾两秒里的 {iterations} 步可能不属于这次运行。"
        }
        WarningCode::NoModelList => "服务端没有 `/v1/models`，模型名和窗口长度无法核对。",
        WarningCode::NoUsage => "服务端不返回 usage，token 数以客户端计数为准。",
        WarningCode::PreemptionsUnresolved => {
            "有些抢占落在同一个采样间隔里，各自的时刻无法分辨。请提高采样频率。"
        }
        WarningCode::ProfileExtrapolated => "步时模型用到了拟合范围之外，时间只是外推。",
        WarningCode::TextPrompts => "提示词以文本发送，token 数以服务端为准，可能与要求的略有出入。",
        WarningCode::LimitsAssumed => {
            "服务端没有说全它的上限，这里按 GPU 或 profile 的默认值假定：{settings}。请给出启动时的参数，或用 `--server-log` 给出日志。"
        }
        WarningCode::PoolExceedsGpu => {
            "KV {pool_gb} GB 加权重 {weights_gb} GB 超过一块 {gpu} 的 {memory_gb} GB：是别的 GPU，还是有好几块（`--tensor-parallel-size`）？"
        }
        WarningCode::KvBytesDiffer => {
            "按服务端自己的数字，每 token 在一块 GPU 上占 {told_kib} KiB KV；按模型结构是 {due_kib} KiB：是换了精度（`--dtype`）、用了多块 GPU（`--tensor-parallel-size`），还是别的模型？"
        }
        WarningCode::SlidingWindow => {
            "部分层只保留一个窗口内的 token；这里按所有层都保留全部来算 KV 池，实际能装的可能更多。"
        }
        WarningCode::NoMetrics => {
            "读不到服务端指标，这次运行只有客户端一侧的数据。可用 `--metrics-url` 指明别的地址。"
        }
        WarningCode::Unknown => return None,
    })
}

/// What contradicts the plan of a run.
fn against_the_plan(code: WarningCode) -> Option<&'static str> {
    Some(match code {
        WarningCode::LocalFailures => {
            "{count} 条请求失败在本机：端口或文件描述符耗尽，与服务端无关。请提高上限（`ulimit -n`），或减少连接。"
        }
        WarningCode::NotStreamed => {
            "{of} 条请求里有 {count} 条要的是流，收到的却是一整个 JSON：token 能数，TTFT 和 ITL 无从得知。"
        }
        WarningCode::OutputsLonger => {
            "{of} 条请求里有 {count} 条的输出比 `max_tokens` 还长：服务端没有遵守它，或没有把全部输出计入；实际负载比计划的重。"
        }
        WarningCode::OutputsShorter => {
            "{of} 条请求里有 {count} 条的输出比强制的短：服务端接受 `ignore_eos` 却没有照做，或窗口到头了；实际负载比计划的轻。"
        }
        WarningCode::PromptsCut => {
            "{of} 条请求里有 {count} 条，服务端数到的 prompt token 比发出的少：它悄悄截断了 prompt（比如 num_ctx 窗口）；实际负载比计划的轻。"
        }
        WarningCode::UsageContradicts => {
            "{of} 条请求里有 {count} 条的 usage 是 0，事件里却有 token：这个 usage 不作数，每个事件按一个 token 计。"
        }
        _ => return None,
    })
}

/// What a kind of failure means.
pub(crate) fn failure(of: FailureKind, lang: Lang) -> &'static str {
    let (en, zh) = match of {
        FailureKind::Dns => ("the host name did not resolve", "域名解析失败"),
        FailureKind::Refused => ("nobody listens there", "连接被拒绝"),
        FailureKind::ConnectTimeout => ("no connection in time", "连接超时"),
        FailureKind::Tls => ("the TLS handshake failed", "TLS 握手失败"),
        FailureKind::Local => ("this machine ran out of ports or open files", "本机端口或文件描述符耗尽"),
        FailureKind::Reset => ("the connection was reset", "连接被重置"),
        FailureKind::ClosedBeforeResponse => {
            ("closed before any byte of the response", "未返回任何字节就被关闭")
        }
        FailureKind::FirstTokenTimeout => ("no first token in time", "首个 token 超时"),
        FailureKind::BetweenTokensTimeout => ("a gap between tokens outlasted its limit", "token 间隔超时"),
        FailureKind::TotalTimeout => ("the whole request outlasted its limit", "整条请求超时"),
        FailureKind::TooManyRequests => ("429: turned away", "429：被限流"),
        FailureKind::ClientError => ("another 4xx", "其他 4xx"),
        FailureKind::Unavailable => ("503: unavailable", "503：不可用"),
        FailureKind::ServerError => ("another 5xx", "其他 5xx"),
        FailureKind::OddStatus => ("an unusual HTTP status", "异常的 HTTP 状态码"),
        FailureKind::StreamError => {
            ("an error event inside a stream that began with 200", "200 的流里出现错误事件")
        }
        FailureKind::StreamCut => ("the stream was cut in the middle", "流在中途断开"),
        FailureKind::StreamIncomplete => {
            ("the stream ended without [DONE] or a finish reason", "流结束时没有 [DONE] 也没有结束原因")
        }
        FailureKind::NoTokens => ("the stream carried no token", "流里没有 token"),
        FailureKind::NotJson => ("not JSON", "不是 JSON"),
        FailureKind::Protocol => ("a violation of HTTP", "违反 HTTP 协议"),
        FailureKind::Cancelled => ("stopped by the end of the run", "因运行结束被取消"),
        FailureKind::Unknown => ("the tool says only that it failed", "原工具只说明失败"),
    };
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// Why a gap was long.
pub(crate) fn cause(of: Cause, lang: Lang) -> &'static str {
    let (en, zh) = match of {
        Cause::OwnPreemption => ("its own preemption", "自己被抢占"),
        Cause::OthersPrefill => ("others' prefill", "别人的 prefill"),
        Cause::OthersRecompute => ("others' recomputation", "别人的重算"),
        Cause::ClientStall => ("a stall of the client", "客户端卡顿"),
        Cause::Unknown => ("unknown", "未知"),
    };
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// What a figure rests on.
pub(crate) fn basis(of: Basis, lang: Lang) -> &'static str {
    let (en, zh) = match of {
        Basis::Exact => ("the engine's own events", "引擎自身的事件"),
        Basis::Steps => ("the engine's steps", "引擎逐步记录"),
        Basis::Flops => ("the FLOPs counter", "FLOPs 计数器"),
        Basis::Replay => ("a replay of the schedule", "重放调度"),
        Basis::Counter => ("the server's counter", "服务端计数器"),
        Basis::Modelled => ("a model", "模型推算"),
        Basis::IterationLog => ("the iteration log", "逐步日志"),
        Basis::Gauges => ("the server's gauges", "服务端指标"),
        Basis::GaugesAndTokens => ("the server's gauges and tokens", "服务端指标与 token 数"),
        Basis::MedianGap => ("the median gap between tokens", "token 间隔中位数"),
        Basis::ModelShape => ("the model's shape", "模型结构"),
        Basis::NoKvGauge => ("no gauge of KV usage", "没有 KV 占用指标"),
        Basis::Pool => ("the size of the pool", "KV 池的大小"),
        Basis::Reported => ("the server's own figure", "服务端自报"),
        Basis::ScrapesTooCoarse => ("scrapes too far apart", "采样太疏"),
        Basis::Unknown => ("unknown", "未知"),
    };
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// Why a ledger of the recomputation has a gap.
pub(crate) fn reason(of: Reason, lang: Lang) -> &'static str {
    let (en, zh) = match of {
        Reason::ModelUnknown => {
            ("the model's shape is unknown (give --model-config)", "模型结构未知（请给 --model-config）")
        }
        Reason::ModelNotDescribed => ("this kind of model is not described", "这类模型没有描述"),
        Reason::ParallelismNotCounted => (
            "pipeline or data parallelism changes what the FLOPs counter counts",
            "流水线或数据并行会改变 FLOPs 计数",
        ),
        Reason::SpeculativeDecoding => {
            ("speculative decoding schedules tokens that are thrown away", "投机解码会调度被丢弃的 token")
        }
        Reason::RequestsFailed => (
            "some requests did not end well, so what was computed for them is unknown",
            "有请求没有正常结束，为它们算了多少未知",
        ),
        Reason::LengthsUnknown => ("the lengths of some requests are unknown", "有请求的长度未知"),
        Reason::CountersDiffer => (
            "the server counted other tokens than this client: it served others too",
            "服务端与客户端的 token 数不一致：还有别的流量",
        ),
        Reason::StepBudgetUnknown => (
            "the tokens of a step (max_num_batched_tokens) are unknown; the server's log has them",
            "每步的 token 上限（max_num_batched_tokens）未知，服务端日志里有",
        ),
        Reason::PrefixHitsUnknown => ("the hits of the prefix cache are unknown", "前缀缓存命中数未知"),
        Reason::FlopsCounterOff => {
            ("the FLOPs counter is off (--enable-mfu-metrics)", "FLOPs 计数器没开（--enable-mfu-metrics）")
        }
        Reason::GpusUnknown => ("the number of GPUs is unknown", "GPU 数未知"),
        Reason::NotAClosedLoop => (
            "the schedule of an open loop depends on its times and can't be replayed",
            "开环的调度取决于时刻，无法重放",
        ),
        Reason::ReplayUnknownEngine => ("the engine can't be replayed", "这个引擎无法重放"),
        Reason::ReplayPrefixHits => (
            "prompts hit the prefix cache, and with which content is unknown",
            "提示词命中了前缀缓存，内容未知，无法重放",
        ),
        Reason::ReplaySettingsUnknown => (
            "the engine's settings are not all known (the server's log has them)",
            "引擎设置不全（服务端日志里有），无法重放",
        ),
        Reason::ReplayTooLong => ("the run is too long to be replayed", "运行太长，没有重放"),
        Reason::ReplayDiffers => {
            ("a replay gave another schedule than the server's", "重放得到的调度与服务端不同")
        }
        Reason::ReplayNotVerified => {
            ("nothing was recorded that a replay could be checked against", "没有可用来核对重放的记录")
        }
        Reason::Unknown => ("a reason that this version does not know", "本版本不认识的原因"),
    };
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// What a replay agrees with.
pub(crate) fn verified(of: Reproduced, lang: Lang) -> &'static str {
    let (en, zh) = match of {
        Reproduced::Preemptions => ("preemptions", "抢占次数"),
        Reproduced::Flops => ("FLOPs to all digits", "FLOPs 每一位"),
        Reproduced::Iterations => ("every logged iteration", "日志里的每一步"),
        Reproduced::Stamps => ("the client's stamp of every token", "客户端每个 token 的时间戳"),
        Reproduced::Unknown => ("something that this version does not compare", "本版本不比较的项目"),
    };
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// A warning as a sentence.
pub(crate) fn warning(warning: &Warning, lang: Lang) -> Line {
    match (lang, chinese(warning.code)) {
        (Lang::Zh, Some(zh)) => filled(zh, &warning.evidence),
        _ => None,
    }
    .unwrap_or_else(|| Line::plain(warning.text.clone()))
}

/// A translation with every figure in its place, or nothing.
fn filled(template: &str, evidence: &BTreeMap<String, Value>) -> Option<Line> {
    let known: Vec<(&str, String)> = evidence
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.as_str(), write(name, value)))
        .collect();
    let all_known = names(template).all(|name| known.iter().any(|(known, _)| *known == name));
    // The markup is read before anything is filled in.
    all_known.then(|| Line::parse(template, &known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_record::{ChunkRow, Ns, RequestRow, Run, Series, Sink};
    use serde_json::json;

    #[test]
    fn a_warning_is_translated_and_one_of_another_version_speaks_for_itself() {
        let own = Warning::new(WarningCode::ClockStepped, "The wall clock was set.").with("skew_ms", 12);
        assert!(warning(&own, Lang::Zh).flat().contains("12.00 ms"));
        assert_eq!(warning(&own, Lang::En).flat(), own.text);
        assert_eq!(warning(&Warning::new(WarningCode::Unknown, "A new one."), Lang::Zh).flat(), "A new one.");
    }

    #[test]
    fn what_the_analysis_warns_of_is_said_in_chinese_throughout() {
        // A server that was restarted, and that shows one of ten requests.
        let mut run = Run::default();
        let tokens: Vec<u64> = (6..=45).map(|at| at * 100_000_000).collect();
        for request in 0..10 {
            for &time in &tokens {
                run.chunk(ChunkRow { request, attempt: 0, time: Ns(time), tokens: 1, events_in_read: 2 });
            }
            let (sent, end) = (Some(Ns(500_000_000)), Ns(4_500_000_000));
            run.request(RequestRow { request, sent, end, last_token: Some(end), ..RequestRow::default() });
        }
        let mut column = |name: &str, values: [f64; 6]| {
            let id = run.series(Series { name: name.to_owned(), labels: BTreeMap::new(), source: 0 });
            for (value, second) in values.into_iter().zip(0..) {
                run.sample(Ns(second * 1_000_000_000), id, value);
            }
        };
        column("up", [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        column("vllm:num_requests_running", [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
        column("vllm:num_requests_waiting", [0.0; 6]);
        column("vllm:prompt_tokens_total", [9.0, 9.0, 1.0, 1.0, 1.0, 1.0]);
        let found =
            precipice_analyze::analyze(&run, &precipice_analyze::Options::default()).findings.warnings;
        for code in [
            WarningCode::HiddenQueue,
            WarningCode::CounterReset,
            WarningCode::ScrapeGaps,
            WarningCode::CoalescedReads,
        ] {
            let warned = found.iter().find(|warning| warning.code == code).unwrap();
            assert_ne!(warning(warned, Lang::Zh).flat(), warned.text, "{code}");
        }
    }

    #[test]
    fn a_translation_without_its_figure_falls_back() {
        let evidence = BTreeMap::from([("a".to_owned(), json!(3)), ("b".to_owned(), Value::Null)]);
        assert_eq!(filled("x {a}", &evidence).map(|line| line.flat()), Some("x 3".to_owned()));
        assert_eq!(filled("x {b}", &evidence), None);
        assert_eq!(filled("x {c}", &evidence), None);
    }
}
