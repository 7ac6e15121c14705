//! What is written is what is read, through both ways of writing.

use precipice_archive::{RunWriter, Table, read, read_manifest, read_tables, write};
use precipice_record::{
    ChunkRow, EventKind, EventRow, FailureKind, Manifest, Ns, Phase, RequestRow, Run, RunState, Series, Sink,
    StepRow,
};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;

fn ns() -> impl Strategy<Value = Ns> {
    prop_oneof![any::<u64>(), 0_u64..10_000_000_000].prop_map(Ns)
}

fn share() -> impl Strategy<Value = f32> {
    0.0_f32..=1.0
}

fn request() -> impl Strategy<Value = RequestRow> {
    let phase =
        prop::sample::select(vec![Phase::Warmup, Phase::Start, Phase::Ramp, Phase::Steady, Phase::Drain]);
    let stamps = (ns(), of(ns()), of(ns()), of(ns()), of(ns()), of(ns()), of(ns()), ns());
    let counts = (of(any::<u32>()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()));
    let end = (of(any::<u16>()), of(prop::sample::select(FailureKind::ALL)), of(".{0,12}"), of("[a-z]{1,6}"));
    (any::<(u32, u16, bool)>(), phase, stamps, counts, of(any::<u32>()), end, of(0.0..1e6)).prop_map(
        |((request, attempt, reused), phase, stamps, counts, output_tokens_usage, end, retry_after_s)| {
            let (intended, sent, connect, first_byte, first_event, first_token, last_token, ended) = stamps;
            let (prompt_tokens, prompt_tokens_usage, cached_tokens, output_tokens_asked, output_tokens) =
                counts;
            let (status, failure, message, finish_reason) = end;
            RequestRow {
                request,
                attempt,
                phase,
                intended,
                sent,
                connect,
                first_byte,
                first_event,
                first_token,
                last_token,
                end: ended,
                prompt_tokens,
                prompt_tokens_usage,
                cached_tokens,
                output_tokens_asked,
                output_tokens,
                output_tokens_usage,
                status,
                failure,
                message,
                finish_reason,
                retry_after_s,
                reused,
                server_queue: connect,
                server_first_token: sent,
                server_mean_itl: first_byte,
            }
        },
    )
}

fn chunk() -> impl Strategy<Value = ChunkRow> {
    (any::<(u32, u16, u16, u16)>(), ns()).prop_map(|((request, attempt, tokens, events_in_read), time)| {
        ChunkRow { request, attempt, time, tokens, events_in_read }
    })
}

fn step() -> impl Strategy<Value = StepRow> {
    let maybe = (of(any::<u32>()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()));
    (any::<(u64, u32, u32, u32, u32)>(), ns(), of(ns()), maybe, of(share()), of(0.0..1e18)).prop_map(
        |(counts, time, duration, maybe, kv_usage, flops)| StepRow {
            step: counts.0,
            time,
            duration,
            context_requests: counts.1,
            context_tokens: counts.2,
            generation_requests: counts.3,
            generation_tokens: counts.4,
            recomputed_tokens: maybe.0,
            running: maybe.1,
            waiting: maybe.2,
            preemptions: maybe.3,
            kv_usage,
            flops,
        },
    )
}

fn event() -> impl Strategy<Value = EventRow> {
    let kind = prop::sample::select(EventKind::ALL.to_vec());
    (any::<(u64, u32, u32, u32, u32)>(), ns(), kind, share(), share()).prop_map(
        |((step, request, tokens, running, waiting), time, kind, kv_before, kv_after)| EventRow {
            time,
            step,
            request,
            kind,
            tokens,
            running,
            waiting,
            kv_before,
            kv_after,
        },
    )
}

fn series() -> impl Strategy<Value = Series> {
    ("[a-z:_]{1,20}", btree_map("[a-z_]{1,5}", ".{0,6}", 0..3), any::<u16>())
        .prop_map(|(name, labels, source)| Series { name, labels, source })
}

prop_compose! {
    fn run()(
        requests in vec(request(), 0..8),
        chunks in vec(chunk(), 0..40),
        series in vec(series(), 0..5),
        samples in vec((ns(), any::<prop::sample::Index>(), any::<f64>()), 0..40),
        steps in vec(step(), 0..8),
        events in vec(event(), 0..8),
    ) -> Run {
        let mut run = Run { requests, steps, events, ..Run::default() };
        for row in chunks {
            run.chunk(row);
        }
        for row in series {
            run.series(row);
        }
        if !run.samples.series.is_empty() {
            for (time, id, value) in samples {
                let id = id.index(run.samples.series.len()) as u32;
                run.sample(time, id, value);
            }
        }
        run.manifest.warnings.push(precipice_record::Doubt::CoalescedReads { coalesced_share: 0.5 }.into());
        run.manifest.plan = serde_json::json!({"concurrency": 64});
        run
    }
}

/// Two runs hold the same rows; a NaN is itself.
fn same_rows(left: &Run, right: &Run) {
    assert_eq!(left.requests, right.requests);
    assert_eq!(left.chunks, right.chunks);
    assert_eq!(left.samples.series, right.samples.series);
    assert_eq!((&left.samples.time, &left.samples.id), (&right.samples.time, &right.samples.id));
    let bits = |run: &Run| run.samples.value.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(left), bits(right));
    assert_eq!(left.steps, right.steps);
    assert_eq!(left.events, right.events);
}

/// Hands all rows of a run to a sink; with series before the first half of the rows and in between.
fn replay(run: &Run, sink: &mut RunWriter) {
    for row in &run.requests {
        sink.request(row.clone());
    }
    for row in 0..run.chunks.len() {
        sink.chunk(run.chunks.row(row));
    }
    for (position, row) in run.samples.series.iter().enumerate() {
        assert_eq!(sink.series(row.clone()) as usize, position);
        if position == 1 {
            sink.flush();
        }
    }
    for row in 0..run.samples.len() {
        sink.sample(run.samples.time[row], run.samples.id[row], run.samples.value[row]);
    }
    for row in &run.steps {
        sink.step(row.clone());
    }
    for row in &run.events {
        sink.event(row.clone());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn in_one_go(run in run()) {
        let scratch = tempfile::tempdir().unwrap();
        let dir = write(scratch.path().join("deep/run"), &run).unwrap();
        let back = read(dir.root()).unwrap();
        same_rows(&run, &back);
        prop_assert_eq!(back.manifest.state, RunState::Complete);
        prop_assert_eq!(&back.manifest.warnings, &run.manifest.warnings);
        prop_assert_eq!(&back.manifest.plan, &run.manifest.plan);
        prop_assert!(!dir.lock().exists());
    }

    #[test]
    fn row_by_row(run in run()) {
        let scratch = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(scratch.path(), &Manifest::default()).unwrap();
        replay(&run, &mut writer);
        writer.flush();
        let live = read(scratch.path()).unwrap();
        same_rows(&run, &live);
        prop_assert_eq!(live.manifest.state, RunState::Running);
        let ended = Manifest { state: RunState::Interrupted, ..run.manifest.clone() };
        let dir = writer.finish(&ended).unwrap();
        let back = read(dir.root()).unwrap();
        same_rows(&run, &back);
        prop_assert_eq!(back.manifest.state, RunState::Interrupted);
        prop_assert!(Table::ALL.into_iter().all(|table| dir.table(table).exists() && !dir.journal(table).exists()));
    }
}

#[test]
fn parts_cost_only_what_they_hold() {
    let scratch = tempfile::tempdir().unwrap();
    let mut run = Run::default();
    run.request(RequestRow::default());
    run.chunk(ChunkRow { request: 0, attempt: 0, time: Ns(5), tokens: 1, events_in_read: 1 });
    let dir = write(scratch.path(), &run).unwrap();
    assert_eq!(read_manifest(dir.root()).unwrap().schema, "precipice.run/1");
    let part = read_tables(dir.root(), &[Table::Requests]).unwrap();
    assert_eq!((part.requests.len(), part.chunks.len()), (1, 0));
    // Not even opened.
    std::fs::write(dir.table(Table::Chunks), "not parquet").unwrap();
    assert!(read_tables(dir.root(), &[Table::Requests]).is_ok());
    let error = read(dir.root()).unwrap_err().to_string();
    assert!(error.contains("chunks.parquet"), "{error}");
}
