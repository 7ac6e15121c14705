//! Texts of what is named by a code elsewhere.
//!
//! The sentences of a warning stand beside its code, in `precipice-record`.

use crate::document::Line;
use crate::lang::Lang;
use precipice_analyze::findings::{Basis, Cause, Reason, Reproduced};
use precipice_record::{FailureKind, Warning};
use precipice_wording::evidence::{chosen, write};

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

/// A warning as a sentence. English is its own text; so is what another version warned of, whose figures have other names.
pub(crate) fn warning(warning: &Warning, lang: Lang) -> Line {
    let template = chosen(warning.code.sentences(), &warning.evidence, lang);
    if lang == Lang::En || template.is_empty() {
        return Line::plain(warning.text.clone());
    }
    let known: Vec<(&str, String)> =
        warning.evidence.iter().map(|(name, value)| (name.as_str(), write(name, value))).collect();
    // The markup is read before anything is filled in.
    Line::parse(&template, &known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_record::{Doubt, WarningCode};
    use std::collections::BTreeMap;

    #[test]
    fn a_warning_is_translated_and_one_of_another_version_speaks_for_itself() {
        let own = Warning::from(Doubt::ClockStepped { skew_ms: 12.0 });
        assert!(warning(&own, Lang::Zh).flat().contains("12.00 ms"));
        assert_eq!(warning(&own, Lang::En).flat(), own.text);
        let old = |code| Warning { code, text: "An old one.".to_owned(), evidence: BTreeMap::new() };
        for code in [WarningCode::Unknown, WarningCode::ClockStepped] {
            assert_eq!(warning(&old(code), Lang::Zh).flat(), "An old one.", "{code}");
        }
    }

    #[test]
    fn a_figure_is_never_markup() {
        let said = Warning::from(Doubt::NoModelList { answer: Some("`rm` **{answer}**".to_owned()) });
        assert!(warning(&said, Lang::Zh).flat().contains("`rm` **{answer}**"));
    }
}
