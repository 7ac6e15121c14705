//! The texts of a plan.

use precipice_decide::How;
use precipice_decide::plan::findings::{Binding, Change};
use precipice_wording::{Wording, wording as w};

pub(super) const BADGE: Wording = w("simulated", "模拟");
pub(super) const TITLE: Wording = w("Plan", "容量规划");

pub(super) const BEYOND: Wording = w(
    "{asked} asked, about {ran} will run: the cliff is at {cliff}",
    "{asked}，约 {ran} 条能跑；断崖在{cliff}",
);
pub(super) const NEAR: Wording = w(
    "The cliff is near: {asked} asked, waiting or preemption begins at {cliff}",
    "断崖很近：{asked}，{cliff}开始排队或抢占",
);
pub(super) const FAR: Wording = w(
    "No cliff is near: {asked} asked, waiting or preemption begins at {cliff}",
    "附近没有断崖：{asked}，{cliff}才开始排队或抢占",
);
pub(super) const BEGUN: Wording = w(
    "{asked} asked, about {ran} will run: requests wait or are preempted",
    "{asked}，约 {ran} 条能跑；有请求排队或被抢占",
);
pub(super) const UNKNOWN: Wording = w(
    "How near the cliff is cannot be said: {asked} asked, and nothing waited up to {searched}",
    "离断崖多远无法判断：{asked}，到{searched}为止没有排队",
);
pub(super) const NONE: Wording =
    w("No cliff is near: nothing waits up to {searched}", "附近没有断崖：到{searched}为止没有排队");
pub(super) const CLIENTS: Wording = w("{n} concurrent", "并发 {n}");
pub(super) const PER_SECOND: Wording = w("{n} requests/s", "{n} 条/秒");
pub(super) const TRACE: Wording = w("this trace", "这段 trace");

pub(super) const MODEL: Wording = w("Model", "模型");
pub(super) const GPU: Wording = w("GPU", "GPU");
pub(super) const POOL: Wording = w("KV pool", "KV 池");
pub(super) const LOAD: Wording = w("Load", "负载");
pub(super) const LOAD_TEXT: Wording =
    w("{load}, {input} in / {output} out", "{load}，输入 {input} / 输出 {output}");
pub(super) const LIMITS: Wording = w("Limits", "上限");
pub(super) const ENGINES: Wording = w("Engines", "引擎");
pub(super) const ENGINES_TEXT: Wording = w(
    "{n} (data parallel): figures are of all together, limits of each",
    "{n} 个（数据并行）：数字是全部合计，上限是每个引擎的",
);
pub(super) const TIMES: Wording = w("Step times", "每步耗时");

pub(super) const FIT: Wording = w("How many fit", "能装几条");
pub(super) const FIT_TEXT: Wording = w(
    "A token takes {token} of KV, a whole request {request}; the pool of {pool} ({how}) holds {tokens} tokens.",
    "每 token 占 {token} KV，一条完整请求占 {request}；KV 池 {pool}（{how}），共 {tokens} token。",
);
pub(super) const LOGGED: Wording = w("Logged", "日志值");
pub(super) const LOGGED_WHY: Wording =
    w("pool / max_model_len, vLLM's line", "KV 池 ÷ max_model_len，vLLM 打印的那行");
pub(super) const FOOTPRINT: Wording = w("By mean footprint", "按平均占用");
pub(super) const FOOTPRINT_WHY: Wording =
    w("pool / {tokens} tokens of a running request", "KV 池 ÷ 一条在跑请求的平均占用 {tokens} token");
pub(super) const CALM: Wording = w("Preemption-free", "不抢占");
pub(super) const CALM_WHY: Wording =
    w("with {confidence} confidence, at random places", "{confidence} 置信，进度随机");
pub(super) const SAFE: Wording = w("Safe", "绝对安全");
pub(super) const SAFE_WHY: Wording = w("whole requests side by side", "并排放得下的完整请求数");
pub(super) const RAN: Wording = w("Runs on average", "平均在跑");
pub(super) const RAN_WHY: Wording = w("under the load that was asked for", "在所要求的负载下");

pub(super) const CLIFF: Wording = w("Where the cliff is", "断崖在哪");
pub(super) const BEGINS: Wording = w("Begins at", "起点");
pub(super) const WAITING: Wording = w("waiting", "排队");
pub(super) const PREEMPTION: Wording = w("preemption", "抢占");
pub(super) const CONCURRENT: Wording = w("concurrent", "并发");
pub(super) const RATE: Wording = w("requests/s", "条/秒");
pub(super) const SATURATION: Wording = w(
    "Asked for more than it holds, the server completes {rate} requests/s; at higher rates the queue grows as long as the load lasts.",
    "超过容量时，服务端每秒完成 {rate} 条；到达率再高，队列就一直变长。",
);
pub(super) const NOT_FOUND: Wording = w("not up to {n}", "到 {n} 都没有");

pub(super) const CURVE: Wording = w("What each load would see", "每一档负载会看到什么");
pub(super) const BY_CONCURRENCY: Wording = w("Closed loop, steady part", "固定并发，稳态部分");
pub(super) const BY_RATE: Wording =
    w("Open loop (Poisson), after the first quarter", "固定到达率（泊松），去掉前四分之一");
pub(super) const THROUGHPUT: Wording = w("out tok/s", "输出 tok/s");
pub(super) const TTFT: Wording = w("TTFT p50", "TTFT p50");
pub(super) const ITL: Wording = w("ITL p50", "ITL p50");
pub(super) const ITL99: Wording = w("ITL p99", "ITL p99");
pub(super) const RUNNING: Wording = w("running", "在跑");
pub(super) const PREEMPTED: Wording = w("preempted", "抢占");
pub(super) const PREEMPTIONS_MIN: Wording = w("preempt/min", "抢占/分");
pub(super) const BOUND: Wording = w("bound by", "瓶颈");
pub(super) const GROWING: Wording = w("{ttft}, growing", "{ttft}，持续增长");
pub(super) const CURVE_CAPTION: Wording = w(
    "Output throughput and median TTFT against concurrency. The line marks where waiting or preemption begins: to its right more clients bring more TTFT and hardly more tokens.",
    "输出吞吐和 TTFT 中位数随并发的变化。竖线是排队或抢占的起点：线右边加并发只加 TTFT，几乎不加吞吐。",
);
pub(super) const RATE_CAPTION: Wording = w(
    "The same against the rate of arrivals. The dotted line marks where waiting or preemption begins, the dashed one what the server completes at most; beyond that TTFT depends on how long the load lasts.",
    "随到达率的变化。点线是排队或抢占的起点，虚线是服务端每秒最多完成的条数；超过后者，TTFT 取决于负载持续多久。",
);
pub(super) const AXIS_THROUGHPUT: Wording = w("output tokens/s", "输出 token/s");
pub(super) const AXIS_TTFT: Wording = w("TTFT p50, s (log)", "TTFT p50，秒（对数）");

pub(super) const SET: Wording = w("What to set", "怎么设");
pub(super) const SETTING: Wording = w("Setting", "参数");
pub(super) const VALUE: Wording = w("Value", "取值");
pub(super) const NO_PREEMPTION: Wording = w("no preemption", "零抢占");
pub(super) const BEST: Wording = w("most throughput", "吞吐最高");
pub(super) const OFF_GRID: Wording = w(
    "{value} has no CUDA graph of its own: batches above the last captured size below it run piecewise, which is slower per step than the size above. Keep --max-num-seqs on the size above and say --max-num-active-seqs {value} (vLLM 0.31), or name {value} in --cudagraph-capture-sizes.",
    "{value} 没有自己的 CUDA graph：超过前一档捕获尺寸的批次只能分段执行，每步比上一档更慢。把 --max-num-seqs 留在上一档，用 --max-num-active-seqs {value}（vLLM 0.31 起）来限制，或把 {value} 写进 --cudagraph-capture-sizes。",
);
pub(super) const WINDOW: Wording = w(
    "--max-model-len {value}: the longest request of this load. It frees no memory, it stops longer requests.",
    "--max-model-len {value}：本负载最长的请求。它不省显存，只挡住更长的请求。",
);
pub(super) const CAP: Wording = w(
    "Queue cap {cap}{longest} beside --max-num-seqs {seqs}, 429 beyond: with {rate} requests/s offered, half as much again as it serves, the p99 TTFT of those admitted is {p99} and keeps {budget} with 95% confidence (simulated, {repeats} seeds); {refused} are turned away. The cap counts waiting requests; vLLM counts running ones too: there it is --max-num-queued-reqs {in_flight}. The mean wait alone would allow {mean}.",
    "队列上限 {cap}{longest}（配合 --max-num-seqs {seqs}），超出回 429：到达率 {rate} 条/秒（产能的 1.5 倍）时，放行请求的 TTFT p99 为 {p99}，以 95% 置信守住 {budget}（模拟，{repeats} 个种子）；拒绝 {refused}。这个上限只数排队的请求；vLLM 连运行的一起数，那里是 --max-num-queued-reqs {in_flight}。只看平均等待会放到 {mean}。",
);
pub(super) const CAP_LONGEST: Wording = w(", the longest that was tried,", "（试过的最长值）");
pub(super) const NO_CAP: Wording = w(
    "No queue cap keeps a p99 TTFT of {budget}: with {shortest} waiting at most beside --max-num-seqs {seqs} it is {p99} (simulated, {rate} requests/s offered, {repeats} seeds). What is left: turn requests away as soon as {seqs} are in flight, so that none waits, or offer each server less.",
    "没有哪个队列上限能让 TTFT p99 守住 {budget}：配合 --max-num-seqs {seqs}，最多 {shortest} 条排队时就是 {p99}（模拟，到达率 {rate} 条/秒，{repeats} 个种子）。剩下的办法：在飞满 {seqs} 条就立即拒绝、完全不排队，或减少每台的负载。",
);
pub(super) const CAP_PREFILL: Wording = w(
    "No queue cap keeps a TTFT of {budget}: the prefill alone takes {prefill}.",
    "TTFT 预算 {budget} 无法靠队列上限满足：仅 prefill 就要 {prefill}。",
);
pub(super) const CAP_UNKNOWN: Wording = w(
    "The queue cap for a TTFT of {budget} is not known: the saturated server completed nothing.",
    "TTFT 预算 {budget} 对应的队列上限未知：饱和时没有请求完成。",
);
pub(super) const QUEUE_CAP: Wording = w("queue cap", "队列上限");
pub(super) const SEQS: Wording = w("max-num-seqs", "max-num-seqs");
pub(super) const TTFT99: Wording = w("TTFT p99", "TTFT p99");
pub(super) const REFUSED: Wording = w("turned away", "拒绝");
pub(super) const TRIED: Wording = w("All values that were tried", "试过的所有取值");
pub(super) const ON_GRID: Wording = w("graph", "graph");
pub(super) const YES: Wording = w("own", "有");
pub(super) const NO: Wording = w("–", "–");

pub(super) const WHAT_IF: Wording = w("What more would buy", "加资源能换来什么");
pub(super) const CHANGE: Wording = w("Change", "改动");
pub(super) const GAIN: Wording = w("change", "变化");
pub(super) const POOL_TOKENS: Wording = w("pool tok", "池 tok");

pub(super) const BASIS: Wording = w("How these numbers were got", "这些数字怎么来的");
pub(super) const BASIS_TEXT: Wording = w(
    "KV bytes and how many fit: closed form from the configuration. The rest: simulated with the scheduler of vLLM {version} in virtual time, {seeds} seeds where chance has a part. Intervals hold the spread over seeds (95%) and ±{error} for step times ({why}).",
    "KV 字节数与能装几条：由配置直接推出。其余：用 vLLM {version} 的调度器在虚拟时间里模拟，有随机性处各跑 {seeds} 个种子。区间含种子间的离散（95%）与步时模型误差 ±{error}（{why}）。",
);
pub(super) const ERROR_MEASURED: Wording =
    w("kernel times of the {name} were measured", "{name} 的 kernel 耗时是实测的");
pub(super) const ERROR_ASSUMED: Wording = w(
    "the efficiencies of the {name} are assumed, not measured: a profile from calibrate narrows this",
    "{name} 的效率是假定的，没有实测：用 calibrate 拟合的 profile 可以收窄",
);
pub(super) const ERROR_PROFILE: Wording = w(
    "the largest bias of a region of the profile \"{name}\", at least 2%",
    "profile \"{name}\" 各区间里最大的偏差，至少 2%",
);
pub(super) const WARNING: Wording = w("Warning", "注意");

pub(super) fn how(how: How) -> Wording {
    match how {
        How::Given => w("given", "参数给定"),
        How::Preset => w("the preset's, from a start-up log", "预设值,来自启动日志"),
        How::Reported => w("reported by the server", "服务端报告"),
        How::Configuration => w("configuration", "配置"),
        How::ClosedForm => w("closed form", "公式"),
        How::Simulated => w("simulated", "模拟"),
        How::Measured => w("measured", "实测"),
    }
}

pub(super) fn binding(binding: Binding) -> Wording {
    match binding {
        Binding::KvPool => w("KV pool", "KV 池"),
        Binding::SequenceLimit => w("max-num-seqs", "max-num-seqs"),
        Binding::TokenBudget => w("prefill", "prefill"),
        Binding::StepTime => w("step time", "步时"),
    }
}

pub(super) fn change(change: Change) -> Wording {
    match change {
        Change::KvTimes1_5 => w("1.5× KV memory", "KV 显存 ×1.5"),
        Change::KvTimes2 => w("2× KV memory", "KV 显存 ×2"),
        Change::Fp8Kv => w("--kv-cache-dtype fp8", "--kv-cache-dtype fp8"),
        Change::OneMoreReplica => w("one more replica", "再加一个副本"),
    }
}
