//! Schedules, stop rules, phases and the sampler.

use crate::server::{EVENTS_HEAD, Server, Test, Then, good, planned, token};
use precipice_drive::{Handle, Schedule};
use precipice_engine::virtual_time::{Setup, simulate};
use precipice_engine::{StepCost, StepCostError, StepShape, StepTime};
use precipice_record::{FailureKind, Ns, Phase, Run, RunState};
use precipice_workload::Arrival;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

fn ok() -> Server {
    Server::start(|_, stream| {
        stream.write_all(good(3).as_bytes()).ok();
        Then::Keep
    })
}

#[test]
fn a_closed_loop_sends_the_whole_plan_and_keeps_its_connections() {
    let server = ok();
    let (run, outcome) = Test::closed(4, 40).run(&server.url());
    assert_eq!(run.requests.len(), 40);
    assert!(run.requests.iter().zip(0..).all(|(row, index)| row.request == index && row.completed()));
    assert_eq!(run.requests.iter().filter(|row| !row.reused).count(), 4);
    assert_eq!(run.chunks.len(), 120);
    assert_eq!(outcome.state, RunState::Complete);
    let (start, end) = outcome.window.unwrap();
    assert_eq!(Some(start), run.requests.iter().filter_map(|row| row.sent).min());
    assert_eq!(Some(end), run.requests.iter().map(|row| row.end).max());
    let phases = |phase| run.requests.iter().filter(|row| row.phase == phase).count();
    assert_eq!(phases(Phase::Start), 4);
    assert!((1..=4).contains(&phases(Phase::Drain)), "{}", phases(Phase::Drain));
}

/// The live client and the simulated one begin the clients of a staggered loop at the same times, whatever the threads.
/// Nobody is answered before all have begun: a client that is free earlier takes the next request at once, in both.
#[test]
fn a_staggered_loop_arrives_as_it_does_in_the_simulation() {
    let (clients, spread) = (7, 50_000_000);
    for threads in [1, 2] {
        let all_here = Barrier::new(clients as usize);
        let server = Server::start(move |_, stream| {
            all_here.wait();
            stream.write_all(good(3).as_bytes()).ok();
            Then::Keep
        });
        let mut test = Test::closed(clients, clients);
        test.load.schedule = Schedule::Closed { clients, stagger: Duration::from_nanos(spread) };
        test.load.threads = threads;
        let (live, _) = test.run(&server.url());
        let mut live: Vec<u64> = live.requests.iter().map(|row| row.intended.0).collect();
        live.sort_unstable();
        let first = live[0];

        let stagger = Some(precipice_workload::Seconds::try_from(spread as f64 / 1e9).unwrap());
        let load = precipice_workload::Load::Closed { concurrency: clients, stagger };
        let fixed = precipice_workload::Lengths::Fixed;
        let spec = precipice_workload::Spec {
            requests: Some(clients),
            ..precipice_workload::Spec::synthetic(load, fixed(4), fixed(3))
        };
        let plan = precipice_workload::Plan::new(spec, 1, Some("test"), None).unwrap();
        let mut run = Run::default();
        simulate(&Setup::default(), &plan, &mut Slow, &mut run).unwrap();
        let simulated: Vec<u64> = run.requests.iter().map(|row| row.intended.0).collect();
        assert_eq!(live.iter().map(|time| time - first).collect::<Vec<_>>(), simulated, "{threads} threads");
    }
}

/// A server whose steps take a second.
struct Slow;

impl StepCost for Slow {
    fn step_time(&mut self, _: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        Ok(StepTime { gpu: Ns(1_000_000_000), host: Ns(0) })
    }
}

/// llama.cpp does this when more connections wait than it has threads. The client learns of the answer and of the end
/// of the connection at once; what it would send there afterwards is never answered, and never refused.
#[test]
fn a_connection_that_ends_right_behind_an_answer_carries_nothing_more() {
    let server = Server::start(|asked, stream| {
        if asked.on_connection == 0 {
            stream.write_all(good(3).as_bytes()).ok();
            stream.shutdown(std::net::Shutdown::Write).ok();
        }
        Then::Keep
    });
    let mut test = Test::closed(8, 400);
    // Only the mistake waits for it.
    test.load.timeouts.total = Some(Duration::from_secs(20));
    let (run, _) = test.run(&server.url());
    assert_eq!(run.requests.iter().filter(|row| row.completed()).count(), 400);
}

/// The gap belongs to the server, and the client's own heartbeat says so.
#[test]
fn a_stall_of_two_seconds_is_a_gap_of_two_seconds() {
    let stall = Duration::from_secs(2);
    let server = Server::start(move |asked, stream| {
        let whole = good(3);
        let second = whole.match_indices("data: ").nth(1).unwrap().0;
        // The size line of its chunk stays with it.
        let cut = whole[..second - 2].rfind("\r\n").unwrap() + 2;
        stream.write_all(&whole.as_bytes()[..cut]).ok();
        if asked.number == 3 {
            std::thread::sleep(stall);
        }
        stream.write_all(&whole.as_bytes()[cut..]).ok();
        Then::Keep
    });
    let (run, outcome) = Test::closed(2, 20).run(&server.url());
    assert!(run.requests.iter().all(precipice_record::RequestRow::completed));
    let mut stalled = 0;
    for row in &run.requests {
        let rows = (0..run.chunks.len()).map(|index| run.chunks.row(index));
        let times: Vec<_> =
            rows.filter(|chunk| chunk.request == row.request).map(|chunk| chunk.time).collect();
        stalled += times.windows(2).filter(|pair| pair[1].since(pair[0]).secs() >= 1.9).count();
    }
    assert_eq!(stalled, 1);
    let own = outcome.verdict.audit.stalls.iter().filter(|stall| stall.lasted.secs() >= 1.9).count();
    assert_eq!(own, 0, "the client itself did not stand still");
}

#[test]
fn several_threads_share_one_plan() {
    let server = ok();
    let mut test = Test::closed(5, 50);
    test.load.threads = 3;
    let (run, _) = test.run(&server.url());
    assert_eq!(run.requests.len(), 50);
    assert!(run.requests.iter().zip(0..).all(|(row, index)| row.request == index && row.completed()));
}

#[test]
fn an_open_loop_sends_at_its_times() {
    let server = ok();
    let mut test = Test::closed(1, 0);
    test.load.schedule = Schedule::Open;
    test.load.threads = 2;
    test.requests = (0..20).map(|index| planned(index, Arrival::At(u64::from(index) * 2_000_000))).collect();
    let (run, outcome) = test.run(&server.url());
    assert_eq!(run.requests.len(), 20);
    let first = run.requests[0].intended;
    for row in &run.requests {
        assert_eq!(row.intended.0 - first.0, u64::from(row.request) * 2_000_000);
        assert!(row.sent.unwrap() >= row.intended, "nothing is sent before its time");
    }
    assert!(outcome.verdict.audit.send_late_p99.is_some());
}

#[test]
fn a_cap_holds_back_what_is_due_and_the_intended_time_stands() {
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let (seen, count) = (Arc::clone(&most), Arc::clone(&now));
    let server = Server::start(move |_, stream| {
        seen.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        stream.write_all((EVENTS_HEAD.to_owned() + &token("a")).as_bytes()).unwrap();
        count.fetch_sub(1, Ordering::SeqCst);
        stream.write_all(&good(2).as_bytes()[EVENTS_HEAD.len()..]).unwrap();
        Then::Keep
    });
    let mut test = Test::closed(1, 0);
    test.load.schedule = Schedule::OpenCapped { cap: 2 };
    test.requests = (0..12).map(|index| planned(index, Arrival::At(0))).collect();
    let (run, _) = test.run(&server.url());
    assert_eq!(run.requests.len(), 12);
    assert!(run.requests.iter().all(|row| row.intended == run.requests[0].intended && row.completed()));
    assert!(most.load(Ordering::SeqCst) <= 2);
}

#[test]
fn warm_up_requests_come_first_and_have_no_chunks() {
    let server = ok();
    let mut test = Test::closed(2, 4);
    test.warmup = (0..3).map(|index| planned(index, Arrival::WhenFree)).collect();
    let (run, _) = test.run(&server.url());
    let (warm, measured): (Vec<_>, Vec<_>) = run.requests.iter().partition(|row| row.phase == Phase::Warmup);
    assert_eq!((warm.len(), measured.len(), run.chunks.len()), (3, 4, 12));
    let last = warm.iter().map(|row| row.end).max();
    assert!(measured.iter().all(|row| Some(row.intended) >= last));
    assert!(measured.iter().any(|row| row.reused), "connections outlive the warm-up");
}

/// A server that begins to stream and then waits until the test is over.
fn endless() -> (Server, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (hold, held) = mpsc::channel::<()>();
    let (told, begun) = mpsc::channel();
    let (held, told) = (Mutex::new(held), Mutex::new(told));
    let server = Server::start(move |_, stream| {
        stream.write_all((EVENTS_HEAD.to_owned() + &token("a")).as_bytes()).unwrap();
        told.lock().unwrap().send(()).unwrap();
        held.lock().unwrap().recv().ok();
        Then::Close
    });
    (server, hold, begun)
}

#[test]
fn the_second_interrupt_ends_what_is_in_flight() {
    let (server, hold, begun) = endless();
    let handle = Handle::new();
    let steering = handle.clone();
    let interrupter = std::thread::spawn(move || {
        begun.recv().unwrap();
        assert!(steering.interrupt());
        assert!(!steering.interrupt());
        assert!(!steering.interrupt());
    });
    let (run, outcome) = Test::closed(1, 5).run_with(&server.url(), &handle);
    interrupter.join().unwrap();
    drop(hold);
    assert_eq!(outcome.state, RunState::Interrupted);
    assert_eq!(run.requests.len(), 1);
    assert_eq!(run.requests[0].failure, Some(FailureKind::Cancelled));
    assert_eq!(run.chunks.len(), 1, "what was measured is kept");
}

#[test]
fn the_first_interrupt_lets_requests_end() {
    let handle = Handle::new();
    let steering = handle.clone();
    let server = Server::start(move |_, stream| {
        steering.interrupt();
        stream.write_all(good(3).as_bytes()).ok();
        Then::Keep
    });
    let (run, outcome) = Test::closed(1, 1000).run_with(&server.url(), &handle);
    assert_eq!(outcome.state, RunState::Interrupted);
    assert!(run.requests.len() < 1000);
    assert!(run.requests[0].completed());
}

#[test]
fn a_duration_ends_the_sending_and_the_drain_ends_the_rest() {
    let (server, hold, _begun) = endless();
    let mut test = Test::closed(2, 100);
    test.load.stop.duration = Some(Duration::from_millis(30));
    test.load.stop.drain = Some(Duration::ZERO);
    let (run, outcome) = test.run(&server.url());
    drop(hold);
    assert_eq!(run.requests.len(), 2);
    assert!(run.requests.iter().all(|row| row.failure == Some(FailureKind::Cancelled)));
    assert_eq!(outcome.state, RunState::Complete, "the end that was asked for is no interruption");
}

#[test]
fn gaps_in_the_scrapes_are_rows_and_the_reason_is_kept() {
    let server = Server::start(|asked, stream| {
        let page = match asked.on_connection {
            0 => "vllm:num_requests_running 0\nvllm:request_success_total 7\n",
            1 => "<html>busy</html>",
            _ => "vllm:num_requests_running 0\nvllm:request_success_total 1\n",
        };
        let answer = if asked.line.starts_with("GET /metrics") {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len())
        } else {
            good(3)
        };
        stream.write_all(answer.as_bytes()).ok();
        Then::Keep
    });
    let mut test = Test::closed(1, 3);
    test.metrics = vec![format!("{}/metrics", server.url())];
    let (run, outcome) = test.run(&server.url());
    let up = run.samples.series.iter().position(|series| series.name == "up").unwrap();
    let ups: Vec<f64> = run.samples.of(up as u32).map(|(_, value)| value).collect();
    assert!(ups.contains(&0.0) && ups.contains(&1.0), "{ups:?}");
    assert!(outcome.sampling.unwrap().first_error.is_some());
}

#[test]
fn each_replica_is_a_source_of_its_own() {
    let page = |body: &'static str| {
        Server::start(move |_, stream| {
            drop(stream.write_all(
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes(),
            ));
            Then::Keep
        })
    };
    let (one, two) = (page("a{x=\"1\"} 1\n"), page("a{x=\"1\"} 2\n"));
    let server = ok();
    let mut test = Test::closed(1, 1);
    test.metrics = vec![one.url(), two.url()];
    let (run, _) = test.run(&server.url());
    let sources: Vec<u16> =
        run.samples.series.iter().filter(|series| series.name == "a").map(|series| series.source).collect();
    assert_eq!(sources.len(), 2);
    assert!(sources.contains(&0) && sources.contains(&1));
}

#[test]
fn a_huge_page_is_a_gap_and_no_flood() {
    let server = Server::start(|asked, stream| {
        if asked.line.starts_with("GET /metrics") {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 52428800\r\n\r\n").ok();
            let block = vec![b'#'; 1 << 20];
            for _ in 0..50 {
                if stream.write_all(&block).is_err() {
                    break;
                }
            }
            return Then::Close;
        }
        stream.write_all(good(3).as_bytes()).ok();
        Then::Keep
    });
    let mut test = Test::closed(1, 1);
    test.metrics = vec![server.url()];
    let (run, outcome) = test.run(&server.url());
    assert!(run.requests[0].completed());
    let sampling = outcome.sampling.unwrap();
    assert_eq!(sampling.period, Some(Ns(1_000_000_000)));
    assert!(sampling.first_error.unwrap().contains("larger than"));
}
