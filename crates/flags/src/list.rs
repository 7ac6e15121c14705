//! The list.

use crate::fact;
use crate::{Fact, Flag, Group, WithUrl};
use Group::{Client, Engine, Load, Output, Pace, Sampling, Target};

/// Every flag of `precipice run`, in the order in which a suggested command names them.
pub const FLAGS: &[Flag] = &[
    // The server and how it is asked.
    real(Target, "url"),
    both(Target, "model").fact(fact::model),
    both(Target, "model-config"),
    real(Target, "endpoint"),
    real(Target, "api-key-env"),
    real(Target, "header"),
    real(Target, "ca-cert"),
    real(Target, "insecure").switch(),
    real(Target, "ready-timeout"),
    real(Target, "extra-body"),
    real(Target, "allow-eos").switch(),
    real(Target, "prompts"),
    real(Target, "vocabulary"),
    // When requests come.
    both(Pace, "concurrency").fact(fact::concurrency),
    both(Pace, "max-in-flight").fact(fact::max_in_flight),
    both(Pace, "rate").fact(fact::rate),
    both(Pace, "stages"),
    both(Pace, "capacity"),
    both(Pace, "arrivals"),
    both(Pace, "burstiness").fact(fact::burstiness),
    both(Pace, "stagger"),
    both(Pace, "trace-speed"),
    // What they are.
    both(Load, "requests").fact(fact::requests),
    both(Load, "duration").fact(fact::duration),
    both(Load, "input-tokens").fact(fact::input_tokens),
    both(Load, "output-tokens").fact(fact::output_tokens),
    both(Load, "warmup").fact(fact::warmup),
    both(Load, "seed").fact(fact::seed),
    both(Load, "data"),
    both(Load, "shuffle").switch(),
    both(Load, "trace-block-tokens"),
    both(Load, "trace-time-unit"),
    both(Load, "priority"),
    both(Load, "prefix-tokens"),
    both(Load, "prefix-groups"),
    both(Load, "prefix-zipf"),
    both(Load, "reuse-prompts").switch(),
    // The client.
    both(Client, "timeout"),
    real(Client, "connect-timeout"),
    both(Client, "first-token-timeout"),
    real(Client, "token-timeout"),
    real(Client, "drain-timeout"),
    both(Client, "retries"),
    both(Client, "client-retries"),
    real(Client, "client-threads"),
    real(Client, "strict").switch(),
    // The engine: first the machine.
    built_in("preset"),
    built_in("profile"),
    stated("gpu").not_vllm().fact(fact::gpu),
    built_in("gpu-memory"),
    built_in("gpu-bandwidth"),
    built_in("gpu-tflops"),
    stated("tensor-parallel-size").fact(fact::tensor_parallel_size),
    refused("hf-overrides"),
    // Its limits.
    stated("max-num-seqs").fact(fact::max_num_seqs),
    refused("vllm-version").not_vllm(),
    refused("max-num-active-seqs"),
    refused("max-num-queued-reqs"),
    refused("max-num-queued-tokens"),
    refused("max-waiting").not_vllm(),
    stated("max-num-batched-tokens").fact(fact::max_num_batched_tokens),
    stated("max-model-len").fact(fact::max_model_len),
    // Its pool.
    stated("kv-cache-dtype").fact(fact::kv_cache_dtype),
    stated("block-size").fact(fact::block_size),
    stated("num-gpu-blocks-override").fact(fact::num_gpu_blocks_override),
    stated("kv-cache-memory-bytes").fact(fact::kv_cache_memory_bytes),
    refused("gpu-memory-utilization"),
    // Its scheduler.
    stated("no-enable-prefix-caching").switch().fact(fact::no_enable_prefix_caching),
    stated("no-enable-chunked-prefill").switch().fact(fact::no_enable_chunked_prefill),
    stated("no-async-scheduling").switch().fact(fact::no_async_scheduling),
    refused("scheduling-policy"),
    refused("long-prefill-token-threshold"),
    refused("long-prefill-token-threshold-adaptive").switch(),
    refused("prefill-schedule-interval"),
    refused("no-scheduler-reserve-full-isl").switch(),
    refused("watermark"),
    refused("enable-mfu-metrics").switch(),
    // What stands in front of it. `plan` has a budget of its own and plans the server alone.
    built_in("guard").not_planned(),
    built_in("ttft-budget"),
    built_in("output-quantile").not_planned(),
    built_in("max-wait").not_planned(),
    built_in("expected-output").not_planned(),
    built_in("class-headroom").not_planned(),
    // What is read of the server beside the load.
    real(Sampling, "metrics-url"),
    both(Sampling, "sample-hz"),
    real(Sampling, "no-metrics").switch(),
    real(Sampling, "server-log"),
    // Results.
    both(Output, "out"),
    both(Output, "no-report").switch(),
    both(Output, "json").switch(),
    both(Output, "quiet").switch(),
    both(Output, "lang"),
    both(Output, "config"),
    both(Output, "print-config").switch(),
];

/// Acts on a real server and on the built-in engine.
const fn both(group: Group, name: &'static str) -> Flag {
    Flag {
        name,
        group,
        switch: false,
        with_url: WithUrl::Acts,
        simulated: true,
        planned: true,
        vllm: false,
        fact: None,
    }
}

/// Acts on a real server alone.
const fn real(group: Group, name: &'static str) -> Flag {
    Flag { simulated: false, ..both(group, name) }
}

/// A flag of vLLM that says something of a real server, which may not say it itself.
const fn stated(name: &'static str) -> Flag {
    Flag { with_url: WithUrl::Stated, vllm: true, ..both(Engine, name) }
}

/// A flag of vLLM that no finding of a real run rests on.
const fn refused(name: &'static str) -> Flag {
    Flag { with_url: WithUrl::Refused, ..stated(name) }
}

/// A flag of the built-in engine that no server has.
const fn built_in(name: &'static str) -> Flag {
    refused(name).not_vllm()
}

impl Flag {
    const fn switch(self) -> Self {
        Self { switch: true, ..self }
    }

    const fn not_planned(self) -> Self {
        Self { planned: false, ..self }
    }

    const fn not_vllm(self) -> Self {
        Self { vllm: false, ..self }
    }

    const fn fact(self, fact: Fact) -> Self {
        Self { fact: Some(fact), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::FLAGS;

    #[test]
    fn no_flag_is_in_two_groups() {
        for (place, flag) in FLAGS.iter().enumerate() {
            assert!(FLAGS[..place].iter().all(|other| other.name != flag.name), "{}", flag.name);
        }
    }
}
