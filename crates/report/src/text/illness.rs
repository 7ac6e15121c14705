//! Illnesses in Chinese, and the names of their evidence.
//!
//! English comes with the diagnosis. The Chinese follows the same rule: the first title of which every figure is
//! known, and of each sentence of the remedy the first wording of which every figure is.

use crate::document::{Line, Span};
use crate::lang::Lang;
use precipice_analyze::diagnosis::{Illness, shown, worded};
use precipice_analyze::findings::Diagnosis;
use serde_json::Value;
use std::collections::BTreeMap;

struct Words {
    code: Illness,
    titles: &'static [&'static str],
    remedies: &'static [&'static [&'static str]],
}

const CHINESE: &[Words] = &[
    Words {
        code: Illness::Healthy,
        titles: &[
            "健康:{completed} 条请求全部完成,平均 {waiting_mean} 条在排队,抢占 {preemptions} 次",
            "健康:{completed} 条请求全部完成,平均 {waiting_mean} 条在排队",
        ],
        remedies: &[&[
            "还有余量:KV 占用峰值 {kv_peak_share},池子装得下 {fits_requests} 条这样的请求,而并发只有 {asked}。",
            "KV 占用峰值 {kv_peak_share}。",
        ]],
    },
    Words {
        code: Illness::KvCapacity,
        titles: &[
            "在排队等 KV:要 {asked} 条,平均跑了 {running_mean} 条,{waiting_mean} 条在等;{for_kv_share} 的等待发生在池子放不下下一条的时候",
            "在排队等 KV:平均 {waiting_mean} 条在等;{for_kv_share} 的等待发生在池子放不下下一条的时候",
        ],
        remedies: &[
            &[
                "与其让人排队,不如快速失败:等待超过 {queue_cap} 条就返回 429;按 {completed_per_s} 条/s 的完成速率,队尾那条的首字延迟平均为 {ttft_budget_s};要 p99 也守住,用 `precipice plan` 求上限。",
            ],
            &["换更快的卡没有用:TTFT 里 {queue_share} 是排队。"],
            &[
                "要让 {asked} 条同时跑,KV 池得有 {pool_needed_tokens} token({pool_needed_bytes}),现在只有 {pool_tokens}:加卡、换更小的 KV 类型(--kv-cache-dtype fp8)或缩短上下文。现在的池子一次装得下 {fits_requests} 条。",
                "要让 {asked} 条同时跑,KV 池得有 {pool_needed_tokens} token,现在只有 {pool_tokens}:加卡、换更小的 KV 类型或缩短上下文。",
                "加卡、换更小的 KV 类型或缩短上下文,才装得下更多。",
            ],
            &[
                "到达率 {arrivals_per_s} 条/s 超过这个池子的 {completed_per_s} 条/s:只要还这么来,队列就一直涨。",
            ],
        ],
    },
    Words {
        code: Illness::SequenceLimit,
        titles: &[
            "KV 还有 {kv_free_share} 空着,{waiting_mean} 条却被 {limit} 的序列上限挡在外面",
            "{waiting_mean} 条被 {limit} 的序列上限挡在外面;服务端没有给出 KV 占用",
        ],
        remedies: &[
            &[
                "把 {flag} 从 {limit} 提到 {fits_requests}:池子装得下这么多条满上下文的请求,不会抢占。每一步会变长,盯住 ITL(现在中位 {itl_p50_ms})。",
                "显存够的话,把 {flag} 提到 {limit} 以上,同时盯住 ITL(现在中位 {itl_p50_ms})。",
            ],
            &["{seen_limit} 的上限是从指标读出来的(从未超过),以服务端配置为准。"],
            &["共 {replicas} 个副本:上面两个数都是每个副本的。"],
            &[
                "在此之前,等待超过 {queue_cap} 条就返回 429:按 {completed_per_s} 条/s,队尾那条的首字延迟平均为 {ttft_budget_s}。",
            ],
        ],
    },
    Words {
        code: Illness::PrefillQueue,
        titles: &[
            "输入在排队等每步 {budget_tokens} token 的预算:平均 {waiting_mean} 条在等,而 KV 和位置都还有空",
            "输入在排队等每步的 token 预算:平均 {waiting_mean} 条在等,而 KV 和位置都还有空",
        ],
        remedies: &[
            &[
                "只有 {burst_scrapes_share} 的采样点有人在等:那是开头的齐发。用 --stagger 错开,或用固定到达率(--rate)来测。",
            ],
            &[
                "输入以 {prompt_tokens_per_s} token/s 到来:调大 --max-num-batched-tokens(现在 {budget_tokens}),每步能多算一些,代价是正在 decode 的人停得更久。",
                "调大每步的 token 预算,代价是正在 decode 的人停得更久。",
            ],
        ],
    },
    Words {
        code: Illness::PreemptionThrash,
        titles: &[
            "抢占 {preemptions} 次,平均每条请求 {a_request} 次:重算了 {recomputed_tokens} token,占墙钟 {recompute_of_wall_clock_share}",
            "抢占 {preemptions} 次,平均每条请求 {a_request} 次:重算了 {recomputed_tokens} token",
            "抢占 {preemptions} 次,平均每条请求 {a_request} 次:丢掉了 {released_tokens} token 的 KV",
            "抢占 {preemptions} 次,平均每条请求 {a_request} 次",
        ],
        remedies: &[
            &[
                "按装得下的放行:{flag} {safe_requests}(现在 {limit})就没有什么可抢占的了。平均在跑 {running_mean} 条,所以最多少 {residents_lost_share} 的驻留,换回现在重算掉的时间。",
                "按装得下的放行:{flag} {safe_requests} 就没有什么可抢占的了。平均在跑 {running_mean} 条,所以最多少 {residents_lost_share} 的驻留,换回现在重算掉的时间。",
                "按装得下的放行:{flag} {safe_requests} 就没有什么可抢占的了。",
                "一次少放几条({flag}),让它们连同全部上下文都装得下。",
            ],
            &[
                "vLLM 只按固定的几档批大小、到序列上限为止捕获整张 CUDA graph,{safe_requests} 不在档上:超过 {full_graph_requests} 条的批不走整图,decode 更慢。和 {graph_limit} 哪个划算,`precipice plan` 会算。",
            ],
            &["有 95 % 把握不抢占的上限是 {likely_free_requests} 条。"],
            &["或者把池子加到 {pool_for_peak_tokens} token,放进来的 {running_peak} 条就都装得下。"],
            &["共 {replicas} 个副本:以上都是每个副本的数。"],
        ],
    },
    Words {
        code: Illness::AdmissionHang,
        titles: &[
            "引擎卡死:一条 {request_tokens} token 的请求要 {blocks} 个 KV 块,池子只有 {usable_blocks} 个,后面还堵着 {stuck_requests} 条",
            "引擎卡死:整整 {stuck_s} 没有一条在跑,{stuck_requests} 条在等",
        ],
        remedies: &[
            &[
                "池子至少要 {needed_blocks} 块(--num-gpu-blocks-override 把 vLLM 的空块也算在内,而空块谁也用不了);或者把 --max-model-len 降到 {longest_tokens},让这样的请求在门口就被拒绝。",
                "最长的请求要 {longest_request_tokens} token,池子只有 {pool_tokens},其中还有一块永远不可用:加大池子,或降低 --max-model-len 让它在门口被拒绝。",
                "找出那条永远放不进来的请求:它要的 KV 比池子大;或者关了分块 prefill 而输入超过 --max-num-batched-tokens。",
            ],
            &["客户端必须有超时:这个队列自己不会动。"],
        ],
    },
    Words {
        code: Illness::HiddenQueue,
        titles: &[
            "有隐藏队列:平均 {missing_requests} 条(在飞的 {missing_share})既不在跑,也不在服务端的队列里",
        ],
        remedies: &[
            &[
                "每条请求平均有 {held_ms} 停在引擎指标看不到的地方:查代理的连接数上限、前端进程数(vLLM:--api-server-count)、分词器。",
            ],
            &["TTFT 均值 {ttft_ms},服务端的排队时间只解释得了 {queue_ms};其余不归调度器管。"],
        ],
    },
    Words {
        code: Illness::ClientBottleneck,
        titles: &[
            "瓶颈在客户端:1 % 的请求迟发 {late_p99_ms} 以上",
            "瓶颈在客户端:它的线程已经用了 {cpu_share}",
            "瓶颈在客户端:它自己这么说",
        ],
        remedies: &[
            &[
                "多给它几个线程(--client-threads,现在 {threads})或一台单独的机器,重测一次:这次的数字说的不只是服务端。",
                "多给它几个核或一台单独的机器,重测一次:这次的数字说的不只是服务端。",
            ],
            &["它的事件循环在 p99 迟了 {loop_late_p99_ms}。"],
        ],
    },
    Words {
        code: Illness::SlowDecoding,
        titles: &[
            "解码慢:{running} 条在跑时每个 token 要 {quiet_ms},而按 {gpu} 的规格,这样一步只要 {expected_ms}",
            "解码超出承诺:没人插队时每个 token 也要 {quiet_ms},而允许的是 {promised_ms}",
            "解码慢:没人插队时每个 token 也要 {quiet_ms},比人读得还慢",
        ],
        remedies: &[
            &[
                "这不是排队:加 KV、缩短队列都没有用。查 kernel(attention 后端、CUDA graph;vLLM 不要开 --enforce-eager)、量化实现(每个 token 都要反量化)、GPU 频率。",
            ],
            &["如果是批太大撑长了每一步,就把 {flag} 降到 {running} 以下。"],
        ],
    },
    Words {
        code: Illness::PrefillCrowding,
        titles: &[
            "decode 被别人的 prefill 挤占:流的时间有 {held_up_share} 花在别人的输入上,每次停 {held_up_ms},而单纯 decode 只要 {quiet_ms}",
        ],
        remedies: &[
            &[
                "把 --max-num-batched-tokens(现在 {budget_tokens})调小,每次停得更短:{half_budget_tokens} 时约 {half_gap_ms};输入要多算几步,TTFT 略涨。",
                "把每步的 token 预算调小,每次停得更短,输入要多算几步。",
            ],
            &[
                "--long-prefill-token-threshold 让长输入轮流算;prefill 与 decode 分机部署则彻底没有这个问题。这里输入是输出的 {prompt_ratio}。",
            ],
        ],
    },
    Words {
        code: Illness::PrefixCache,
        titles: &[
            "前缀缓存被污染:{hit_share} 的输入 token 命中缓存,而计划里只共享 {planned_share}",
            "计划重复了自己的提示词(占 {repeated_share}):{hit_share} 的输入 token 命中前缀缓存",
            "{hit_share} 的输入 token 命中前缀缓存:除非本来就要共享开头,否则就是提示词重复了",
        ],
        remedies: &[
            &[
                "{prompt_tokens} 个输入 token 里有 {cached_tokens} 个没有真正 prefill,TTFT 和吞吐说的是另一种负载。",
                "TTFT 和吞吐说的是输入更短的另一种负载。",
            ],
            &[
                "换一套提示词再跑(去掉 --reuse-prompts,或换 --seed),或先清空缓存(vLLM:POST /reset_prefix_cache),或用 --no-enable-prefix-caching 测。",
            ],
        ],
    },
    Words {
        code: Illness::Warmup,
        titles: &[
            "预热落在了测量窗口里:前 {first_requests} 条里最快的也等了 {first_ttft_ms} 才有首字,而其余请求有四分之一只要 {usual_ttft_ms} 或更短",
        ],
        remedies: &[
            &[
                "先在窗口外预热:--warmup {first_requests}(这次只有 {warmup_requests} 条)。",
                "先在窗口外预热:--warmup {first_requests}。",
            ],
            &["这次 {duration_s} 里约有 {lost_s} 是预热。"],
        ],
    },
];

/// Names of evidence that a reader sees: name, English, Chinese.
const EVIDENCE: &[(&str, &str, &str)] = &[
    ("a_request", "preemptions a request", "每条请求抢占次数"),
    ("arrivals_per_s", "arrivals a second", "到达率(条/s)"),
    ("asked", "asked at once", "请求的并发数"),
    ("blocks", "blocks needed", "需要的块数"),
    ("budget_tokens", "step budget, tokens", "每步 token 预算"),
    ("cached_tokens", "prompt tokens found", "命中的输入 token"),
    ("completed", "completed", "完成"),
    ("completed_per_s", "completed a second", "完成速率(条/s)"),
    ("cpu_share", "CPU of the client", "客户端 CPU"),
    ("demand_ratio", "demand over pool", "需求 ÷ 池"),
    ("duration_s", "wall clock", "用时"),
    ("expected_ms", "step by the data sheet", "按规格的一步"),
    ("first_ttft_ms", "quickest of the first", "开头最快的首字"),
    ("fits_requests", "fit with whole contexts", "满上下文装得下"),
    ("for_kv_share", "waiting with KV full", "KV 满时的等待"),
    ("for_place_share", "waiting at the limit", "到上限时的等待"),
    ("for_prefill_share", "waiting with both free", "两者都有空时的等待"),
    ("full_graph_requests", "largest whole CUDA graph below", "往下一档整图"),
    ("graph_limit", "captured size above", "往上一档捕获大小"),
    ("held_ms", "held a request", "每条停留"),
    ("held_up_ms", "gap with others' prompts", "别人 prefill 时的间隔"),
    ("held_up_share", "time taken by others", "被别人占去的时间"),
    ("hit_share", "prefix cache hits", "前缀缓存命中"),
    ("in_flight_mean", "in flight, mean", "在飞均值"),
    ("interval_s", "one every", "间隔"),
    ("itl_p50_ms", "ITL p50", "ITL p50"),
    ("itl_p90_ms", "ITL p90", "ITL p90"),
    ("itl_p99_ms", "ITL p99", "ITL p99"),
    ("kv_before_share", "KV before", "抢占前 KV"),
    ("kv_free_share", "KV free while waiting", "等待时空闲的 KV"),
    ("kv_peak_share", "KV peak", "KV 峰值"),
    ("kv_usage_while_waiting_share", "KV usage while waiting", "等待时的 KV 占用"),
    ("late_p99_ms", "sent late, p99", "发送迟到 p99"),
    ("limit", "sequence limit", "序列上限"),
    ("missing_request_s", "missing request-seconds", "看不到的请求·秒"),
    ("missing_requests", "missing, mean", "看不到的均值"),
    ("missing_share", "missing of in flight", "看不到的占比"),
    ("over_expected_ratio", "over the data sheet", "与规格之比"),
    ("planned_share", "planned to be shared", "计划共享"),
    ("pool_needed_bytes", "pool for all, bytes", "全部装下需要(字节)"),
    ("pool_needed_tokens", "pool for all, tokens", "全部装下需要(token)"),
    ("pool_tokens", "pool, tokens", "KV 池(token)"),
    ("preemptions", "preemptions", "抢占次数"),
    ("prefill_of_wall_clock_share", "prefill of the wall clock", "prefill 占墙钟"),
    ("promised_ms", "promised", "承诺"),
    ("prompt_tokens", "prompt tokens", "输入 token"),
    ("prompt_tokens_per_s", "prompt tokens a second", "输入 token/s"),
    ("queue_cap", "queue cap", "队列上限"),
    ("queue_ms", "queue time", "排队时间"),
    ("queue_share", "queueing of TTFT", "TTFT 里的排队"),
    ("quiet_ms", "step of decoding alone", "单纯 decode 一步"),
    ("recompute_of_prefill_share", "recomputed of the prompts", "重算占输入"),
    ("recompute_of_wall_clock_share", "recomputation of the wall clock", "重算占墙钟"),
    ("recomputed_tokens", "recomputed tokens", "重算 token"),
    ("released_tokens", "KV thrown away, tokens", "丢掉的 KV(token)"),
    ("repeated_share", "repeated by the plan", "计划里的重复"),
    ("replicas", "replicas", "副本数"),
    ("request_tokens", "tokens of the request", "请求 token 数"),
    ("running", "running, median", "在跑中位"),
    ("running_mean", "running, mean", "在跑均值"),
    ("running_peak", "running, peak", "在跑峰值"),
    ("running_while_waiting", "running while waiting", "等待时在跑"),
    ("safe_requests", "fit without preemption", "不抢占装得下"),
    ("stuck_requests", "stuck", "卡住"),
    ("stuck_s", "stuck for", "卡住时长"),
    ("ttft_ms", "TTFT, mean", "TTFT 均值"),
    ("usable_blocks", "blocks usable", "可用块数"),
    ("usual_ttft_ms", "usual", "通常"),
    ("waited_at_scrapes_share", "scrapes with a queue", "有排队的采样点"),
    ("waiting_mean", "waiting, mean", "排队均值"),
    ("warmup_requests", "warm-up requests", "预热请求"),
];

/// Title and remedy of an illness.
pub(crate) fn diagnosis(illness: &Diagnosis, lang: Lang) -> (Line, Line) {
    let own = || (Line::plain(illness.title.clone()), with_code(&illness.remedy));
    let Some(words) = CHINESE.iter().find(|words| lang == Lang::Zh && words.code == illness.code) else {
        return own();
    };
    let first = |wordings: &[&str]| wordings.iter().find_map(|wording| worded(wording, &illness.evidence));
    let remedy: String = words.remedies.iter().filter_map(|wordings| first(wordings)).collect();
    // A finding of another version, whose figures have other names.
    match first(words.titles) {
        Some(title) if !remedy.is_empty() => (Line::plain(title), with_code(&remedy)),
        _ => own(),
    }
}

/// A remedy with its flags and what stands in backticks as code.
fn with_code(text: &str) -> Line {
    let mut spans = Vec::new();
    for (place, piece) in text.split('`').enumerate() {
        if place % 2 == 1 {
            spans.push(Span::Code(piece.to_owned()));
            continue;
        }
        let mut rest = piece;
        while let Some(at) = rest.find("--") {
            let flag = |c: char| c == '-' || c.is_ascii_lowercase();
            let end = rest[at..].find(|c| !flag(c)).map_or(rest.len(), |length| at + length);
            spans.extend([Span::Plain(rest[..at].to_owned()), Span::Code(rest[at..end].to_owned())]);
            rest = &rest[end..];
        }
        spans.push(Span::Plain(rest.to_owned()));
    }
    spans.retain(|span| !matches!(span, Span::Plain(text) if text.is_empty()));
    Line(spans)
}

/// The figures that a diagnosis rests on, in a line. What serves a sentence only has no name here and is left out.
pub(crate) fn evidence(evidence: &BTreeMap<String, Value>, lang: Lang) -> String {
    EVIDENCE
        .iter()
        .filter_map(|(name, en, zh)| {
            let value = evidence.get(*name).filter(|value| !value.is_null())?;
            let label = if lang == Lang::Zh { zh } else { en };
            Some(format!("{label} {}", shown(name, value)))
        })
        .collect::<Vec<_>>()
        .join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_analyze::diagnosis::templates;
    use serde_json::json;

    fn names(template: &str) -> Vec<&str> {
        let mut names: Vec<&str> = template
            .split('{')
            .skip(1)
            .filter_map(|part| part.split_once('}'))
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn flags_and_backticks_of_a_remedy_are_code() {
        let line = with_code("设 --max-num-seqs 14,`precipice plan` 会算;--kv-cache-dtype");
        let code: Vec<_> = line.0.iter().filter(|span| matches!(span, Span::Code(_))).cloned().collect();
        let flag = |text: &str| Span::Code(text.to_owned());
        assert_eq!(code, [flag("--max-num-seqs"), flag("precipice plan"), flag("--kv-cache-dtype")]);
        assert_eq!(line.flat(), "设 --max-num-seqs 14,precipice plan 会算;--kv-cache-dtype");
    }

    /// Every rule speaks Chinese, with the figures of its English in every sentence.
    #[test]
    fn the_two_languages_say_the_same() {
        assert_eq!(CHINESE.len(), templates().count());
        for (code, titles, remedies) in templates() {
            let words = CHINESE.iter().find(|words| words.code == code).unwrap();
            let told =
                |list: &[&'static str]| -> Vec<Vec<&str>> { list.iter().map(|text| names(text)).collect() };
            assert_eq!(told(words.titles), told(titles), "{code}");
            assert_eq!(words.remedies.len(), remedies.len(), "{code}");
            for (zh, en) in words.remedies.iter().zip(remedies) {
                assert_eq!(told(zh), told(en), "{code}");
            }
        }
    }

    #[test]
    fn an_illness_of_another_version_speaks_for_itself() {
        let illness = Diagnosis {
            code: Illness::KvCapacity,
            title: "Waits".to_owned(),
            remedy: "Do.".to_owned(),
            evidence: BTreeMap::from([("other".to_owned(), json!(1))]),
            ..Diagnosis::default()
        };
        assert_eq!(diagnosis(&illness, Lang::Zh).0.flat(), "Waits");
        assert_eq!(evidence(&illness.evidence, Lang::Zh), "");
    }
}
