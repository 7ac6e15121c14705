//! The promises of the guard, held against a toy server: every request that it has gets a token a step.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use precipice_admission::{
    Admission, Ask, Capacity, End, LeaseId, Observation, Reason, Settings, Ticket, Verdict,
};
use precipice_record::Ns;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const STEP: u64 = 20_000_000;

fn capacity(usable_blocks: u32) -> Capacity {
    Capacity {
        usable_blocks: Some(usable_blocks),
        block_size: 16,
        window: Some(4096),
        max_num_batched_tokens: Some(2048),
        prefix_caching: true,
        ..Capacity::default()
    }
}

fn ask(identity: u64, prompt_tokens: u32, output: u32) -> Ask {
    Ask { prompt_tokens, max_output: Some(output), identity, ..Ask::default() }
}

/// The server: what each lease has left, and its tokens so far.
#[derive(Default)]
struct Toy {
    live: BTreeMap<LeaseId, (u32, u32, u32)>,
    now: u64,
    peak: u32,
}

impl Toy {
    fn begin(&mut self, lease: LeaseId, prompt: u32, output: u32) {
        self.live.insert(lease, (prompt, output, 0));
    }

    /// One step.
    fn step(&mut self, guard: &mut Admission) {
        self.now += STEP;
        let mut ended = Vec::new();
        for (lease, (_, output, tokens)) in &mut self.live {
            *tokens += 1;
            guard.tokens(Ns(self.now), *lease, 1);
            if tokens == output {
                ended.push(*lease);
            }
        }
        let blocks = self.live.values().map(|(prompt, _, tokens)| (prompt + tokens).div_ceil(16)).sum();
        self.peak = self.peak.max(blocks);
        for lease in ended {
            self.live.remove(&lease);
            guard.ended(Ns(self.now), lease, End::Cut, None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Outputs that are no longer than expected never need more than the pool, whoever comes when.
    #[test]
    fn the_pool_is_never_overrun(
        arrivals in prop::collection::vec((0u64..40, 1u32..900, 1u32..300, any::<bool>()), 1..60),
        usable in 40u32..300,
    ) {
        let mut guard = Admission::new(Settings::default(), [capacity(usable)]);
        let mut toy = Toy::default();
        for (identity, (wait, prompt, output, leaves)) in arrivals.into_iter().enumerate() {
            (0..wait).for_each(|_| toy.step(&mut guard));
            match guard.offer(Ns(toy.now), ask(identity as u64, prompt, output)) {
                Verdict::Admitted(grant) => toy.begin(grant.lease, prompt, output),
                Verdict::Impossible(never) => {
                    prop_assert!((prompt + output).div_ceil(16) > usable);
                    prop_assert_eq!(never.pool_tokens, u64::from(usable) * 16);
                }
                Verdict::Refused(refusal) => prop_assert_eq!(refusal.reason, Reason::Kv),
                Verdict::Waiting(..) => prop_assert!(false, "nobody waits"),
            }
            if leaves && let Some(lease) = toy.live.keys().next().copied() {
                toy.live.remove(&lease);
                guard.ended(Ns(toy.now), lease, End::Cut, None);
            }
        }
        while !toy.live.is_empty() {
            toy.step(&mut guard);
        }
        prop_assert!(toy.peak <= usable, "{} of {usable}", toy.peak);
        prop_assert!(guard.is_empty());
    }

    /// Whatever happens in whatever order, what ended is forgotten.
    #[test]
    fn nothing_leaks(turns in prop::collection::vec((0u8..8, any::<u8>(), 1u32..500), 1..200)) {
        let settings = Settings { max_wait: Ns(1_000_000_000), ..Settings::default() };
        let mut guard = Admission::new(settings, [capacity(100), capacity(60)]);
        let (mut leases, mut tickets, mut now) = (Vec::new(), Vec::<Ticket>::new(), 0);
        for (turn, which, size) in turns {
            now += u64::from(size) * 1_000_000;
            let chain: Vec<u64> = (0..u64::from(size / 16)).map(|piece| piece + u64::from(which & 1) * 1000).collect();
            let at = usize::from(which);
            match turn {
                0..=2 => {
                    let asked = Ask {
                        class: which % 3,
                        sequences: u32::from(which % 4) + 1,
                        streams: which % 5 != 0,
                        chain: Arc::from(chain),
                        ..ask(u64::from(which), size, size)
                    };
                    match guard.offer(Ns(now), asked) {
                        Verdict::Admitted(grant) => leases.push(grant.lease),
                        Verdict::Waiting(ticket, until) => {
                            prop_assert!(until > Ns(now));
                            tickets.push(ticket);
                        }
                        Verdict::Refused(_) | Verdict::Impossible(_) => {}
                    }
                }
                3 if !leases.is_empty() => guard.tokens(Ns(now), leases[at % leases.len()], size),
                4 if !leases.is_empty() => {
                    let lease = leases.swap_remove(at % leases.len());
                    guard.ended(Ns(now), lease, if which & 2 == 0 { End::Whole } else { End::Failed }, None);
                    guard.ended(Ns(now), lease, End::Cut, None);
                }
                5 if !leases.is_empty() => {
                    prop_assert!(guard.refused_upstream(Ns(now), leases.swap_remove(at % leases.len())).is_some());
                }
                6 if !tickets.is_empty() => {
                    let ticket = tickets.swap_remove(at % tickets.len());
                    if which & 1 == 0 { guard.cancel(ticket) } else { let _told = guard.give_up(Ns(now), ticket); }
                }
                _ => {
                    let seen = Observation {
                        preemptions: Some(f64::from(which)),
                        waiting: Some(f64::from(which % 2)),
                        kv_usage: Some(f64::from(which) / 255.0),
                    };
                    guard.observe(Ns(now), at % 2, seen);
                }
            }
            for (ticket, grant) in guard.grants(Ns(now)) {
                tickets.retain(|other| *other != ticket);
                leases.push(grant.lease);
            }
            prop_assert_eq!(guard.in_flight(), leases.len());
        }
        for lease in leases {
            guard.ended(Ns(now), lease, End::Failed, None);
        }
        prop_assert!(guard.is_empty());
    }
}

/// Three times what the server carries, by clients that come again when they are told to: those who do are let in.
#[test]
fn who_comes_again_in_time_is_admitted() {
    let mut guard = Admission::new(Settings::default(), [capacity(600)]);
    let mut toy = Toy::default();
    let mut again: Vec<(u64, u64)> = Vec::new();
    let (mut next, mut seen, mut kept, mut admitted) = (0u64, 0, 0, 0u64);
    // 20 requests of 1024 + 256 tokens at once are 5.1 s each: about 4 a second; 12 a second come.
    for step in 0..6_000u64 {
        toy.step(&mut guard);
        let mut due: Vec<u64> =
            again.extract_if(.., |(at, _)| *at <= toy.now).map(|(_, identity)| identity).collect();
        let returns = due.len();
        if step % 4 == 0 {
            next += 1;
            due.push(next);
        }
        for (place, identity) in due.into_iter().enumerate() {
            let verdict = guard.offer(Ns(toy.now), ask(identity, 256, 256));
            seen += u64::from(place < returns);
            match verdict {
                Verdict::Admitted(grant) => {
                    admitted += 1;
                    kept += u64::from(place < returns);
                    toy.begin(grant.lease, 256, 256);
                }
                Verdict::Refused(refusal) => {
                    if let Some(after) = refusal.retry_after.filter(|_| refusal.kept) {
                        again.push((toy.now + after.0, identity));
                    }
                }
                Verdict::Waiting(ticket, _) => {
                    kept += u64::from(place < returns);
                    guard.cancel(ticket);
                }
                Verdict::Impossible(_) => unreachable!("it fits"),
            }
        }
    }
    assert!(seen > 200, "{seen} came again");
    assert!(kept * 10 >= seen * 9, "{kept} of {seen} were let in");
    assert!(toy.peak <= 600 && toy.peak > 500, "{}", toy.peak);
    assert!(admitted > 300);
}

#[test]
fn a_shared_beginning_is_counted_once() {
    let mut guard = Admission::new(Settings::default(), [capacity(200)]);
    let shared = |identity, own: u64| {
        let chain: Vec<u64> = (0..100).chain([own]).collect();
        Ask { chain: Arc::from(chain), ..ask(identity, 1632, 16) }
    };
    let admitted = (0..60).filter(|identity| {
        matches!(guard.offer(Ns(1), shared(*identity, 1000 + identity)), Verdict::Admitted(_))
    });
    // The first holds 103 blocks, each other one 3 of its own; 198 may be used. Without sharing one would fit.
    assert_eq!(admitted.count(), 1 + (198 - 103) / 3);
}

#[test]
fn the_least_urgent_is_shed_first_and_ages() {
    let mut guard = Admission::new(Settings::default(), [capacity(100)]);
    let of = |class, identity| Ask { class, ..ask(identity, 79, 81) };
    let mut last = None;
    for identity in 0..9 {
        let Verdict::Admitted(grant) = guard.offer(Ns(1), of(0, identity)) else { panic!("{identity}") };
        last = Some(grant.lease);
    }
    guard.ended(Ns(1), last.unwrap(), End::Failed, None);
    // 80 blocks are taken; class 0 may use 99 of 100, class 2 may use 89.
    let Verdict::Refused(refusal) = guard.offer(Ns(2), of(2, 50)) else { panic!("class 2 is refused") };
    assert_eq!(refusal.reason, Reason::Class);
    assert!(matches!(guard.offer(Ns(3), of(0, 51)), Verdict::Admitted(_)));
}

#[test]
fn what_never_fits_is_said_with_its_numbers() {
    let mut guard = Admission::new(Settings::default(), [capacity(100)]);
    let Verdict::Impossible(never) = guard.offer(Ns(1), ask(1, 1500, 200)) else { panic!("it cannot fit") };
    assert_eq!((never.prompt_tokens, never.output_tokens, never.pool_tokens), (1500, 200, 1600));
}

#[test]
fn a_shadow_refuses_nothing_and_counts() {
    let settings = Settings { shadow: true, ..Settings::default() };
    let mut guard = Admission::new(settings, [capacity(50)]);
    for identity in 0..5 {
        let Verdict::Admitted(grant) = guard.offer(Ns(1), ask(identity, 200, 200)) else {
            panic!("a shadow")
        };
        assert_eq!(grant.shadowed.is_some(), identity > 0);
    }
    assert_eq!(guard.figures().refused_total(), 4);
}

#[test]
fn waiting_is_bounded_in_order_and_cancelled() {
    let settings = Settings { max_wait: Ns(60_000_000_000), max_waiting: 2, ..Settings::default() };
    let mut guard = Admission::new(settings, [Capacity { step_s: Some(0.02), ..capacity(50) }]);
    let Verdict::Admitted(first) = guard.offer(Ns(1), ask(0, 400, 100)) else { panic!("an empty server") };
    let wait = |verdict| if let Verdict::Waiting(ticket, _) = verdict { Some(ticket) } else { None };
    let left = wait(guard.offer(Ns(2), ask(1, 400, 100))).unwrap();
    let second = wait(guard.offer(Ns(3), ask(2, 400, 100))).unwrap();
    assert_eq!(wait(guard.offer(Ns(4), ask(3, 400, 100))), None, "the queue is full");
    guard.cancel(left);
    assert!(guard.grants(Ns(5)).is_empty());
    guard.ended(Ns(6), first.lease, End::Whole, None);
    // A newcomer does not overtake.
    assert!(wait(guard.offer(Ns(7), ask(4, 16, 16))).is_some());
    let granted = guard.grants(Ns(8));
    assert_eq!(granted[0].0, second);
    assert_eq!(guard.give_up(Ns(9), second), None);
}

#[test]
fn the_emptiest_server_that_is_up_gets_it() {
    let mut guard = Admission::new(Settings::default(), [capacity(100), capacity(200)]);
    let go = |guard: &mut Admission, identity| match guard.offer(Ns(1), ask(identity, 300, 20)) {
        Verdict::Admitted(grant) => grant.replica,
        other => panic!("{other:?}"),
    };
    let places: Vec<usize> = (0..3).map(|identity| go(&mut guard, identity)).collect();
    assert_eq!(places, [1, 0, 1]);
    guard.set_down(1, true);
    assert_eq!(go(&mut guard, 9), 0);
}

#[test]
fn a_prefill_backlog_is_held_to_the_budget() {
    let settings = Settings { ttft_budget: Ns(2_000_000_000), ..Settings::default() };
    let open = Capacity {
        prefill_tokens_per_s: Some(1000.0),
        step_s: Some(0.02),
        window: Some(4096),
        ..Capacity::default()
    };
    let mut guard = Admission::new(settings, [open]);
    let verdicts: Vec<_> = (0..4).map(|identity| guard.offer(Ns(0), ask(identity, 900, 10))).collect();
    assert!(matches!(verdicts[1], Verdict::Admitted(_)));
    let Verdict::Refused(refusal) = verdicts[2] else { panic!("2.7 s of prefill in a budget of 2 s") };
    assert_eq!(refusal.reason, Reason::Prefill);
    assert_eq!((refusal.peak_blocks, refusal.kept), (None, true));
    let first = refusal.retry_after.unwrap();
    let Verdict::Refused(second) = verdicts[3] else { panic!("so is the next") };
    assert!(first >= Ns(1_000_000_000) && second.retry_after.unwrap() >= first);
}
