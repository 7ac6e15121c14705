//! Logs and files of other tools: nothing panics, and an iteration that is read is the same when written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use precipice_wire::llama_log::LlamaFacts;
use precipice_wire::vllm_bench;
use precipice_wire::vllm_log::{Iteration, LogFacts, Periodic, python, read_iterations, write};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let _facts = (LogFacts::read(&text), LlamaFacts::read(&text));
    let _python = (python::literal(&text), python::assignments(&text));
    let _bench = vllm_bench::parse(data);
    let _rows = read_iterations(data, |_| {});
    for line in text.lines() {
        let _periodic = Periodic::parse(line);
        if let Some(iteration) = Iteration::parse(line) {
            let again = Iteration::parse(&write::iteration(iteration.engine.unwrap_or(0), &iteration));
            assert_eq!(again.map(|again| again.context_tokens), Some(iteration.context_tokens));
        }
    }
});
