//! The decision over all servers and the queue.

use crate::appointment::{Appointment, FURTHEST, GRACE, Rank};
use crate::ask::{Ask, Grant, Impossible, LeaseId, Reason, Refusal, Ticket, Verdict};
use crate::figures::{Figures, RETRY_AFTER_BOUNDS_S, ReplicaState};
use crate::output::OutputLengths;
use crate::replica::{Look, Replica};
use crate::settings::{Capacity, Observation, Settings};
use precipice_record::Ns;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Nobody is told to come again sooner.
const SOONEST: Ns = Ns(1_000_000_000);
/// Waits that clients are told are longer by a share between these than the forecast: it errs, and they shall not come at
/// once.
const STRETCH: (f64, f64) = (0.05, 0.15);
/// A client that comes so much before its time is on time: clocks and networks.
const EARLY: Ns = Ns(250_000_000);
/// Waiting so long makes a request as urgent as the class above.
const AGING: Ns = Ns(1_000_000_000);
/// Output tokens where neither a cap, nor a window, nor a pool is known; the KV pool is not held then.
const UNBOUNDED_OUTPUT: u32 = 1024;

/// A request that waits.
#[derive(Debug, Clone)]
struct Waiter {
    ticket: Ticket,
    ask: Ask,
    rank: Rank,
    refusals: u8,
    since: Ns,
    on_time: bool,
}

/// How an admitted request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The output ended by itself.
    Whole,
    /// The output reached its cap, or its client left: it would have gone on.
    Cut,
    /// No output: the server failed or refused.
    Failed,
}

/// Who may reach which server, and when. See the crate's page.
#[derive(Debug, Clone)]
pub struct Admission {
    settings: Settings,
    replicas: Vec<Replica>,
    leases: BTreeMap<LeaseId, usize>,
    routes: HashMap<Arc<str>, OutputLengths>,
    waiting: Vec<Waiter>,
    next: u64,
    draw: u64,
    figures: Figures,
}

impl Admission {
    /// A guard before so many servers, idle.
    pub fn new(settings: Settings, capacities: impl IntoIterator<Item = Capacity>) -> Self {
        Self {
            draw: settings.seed,
            settings,
            replicas: capacities.into_iter().map(Replica::new).collect(),
            leases: BTreeMap::new(),
            routes: HashMap::new(),
            waiting: Vec::new(),
            next: 0,
            figures: Figures::default(),
        }
    }

    /// What was chosen.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What was counted.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Requests that were admitted and have not ended.
    pub fn in_flight(&self) -> usize {
        self.leases.len()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Nothing is held: neither leases, nor entries, nor pieces of prompts. True whenever nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty() && self.replicas.iter().all(|replica| replica.ledger.is_empty())
    }

    /// Each server as it is seen now.
    pub fn replicas(&self, now: Ns) -> Vec<ReplicaState> {
        self.replicas.iter().map(|replica| replica.state(now, &self.settings)).collect()
    }

    /// What a server can carry, as far as it is known.
    pub fn capacity(&self, replica: usize) -> Option<&Capacity> {
        self.replicas.get(replica).map(|replica| &replica.capacity)
    }

    /// A server told more of itself, or was started anew. What was learned of its pace stays.
    pub fn set_capacity(&mut self, replica: usize, capacity: Capacity) {
        if let Some(replica) = self.replicas.get_mut(replica) {
            replica.pace.give(&capacity);
            replica.capacity = capacity;
        }
    }

    /// A server cannot be reached, or can again. One that cannot gets nothing while another can.
    pub fn set_down(&mut self, replica: usize, down: bool) {
        if let Some(replica) = self.replicas.get_mut(replica) {
            replica.down = down;
        }
    }

    /// Tokens of all pools that the forecast leaves free, and of all pools; absent where one is not known.
    pub fn room_tokens(&self, now: Ns) -> Option<(u64, u64)> {
        let rooms = self.replicas.iter().map(|replica| replica.room_tokens(now, &self.settings));
        rooms.sum::<Option<Sum>>().map(|sum| (sum.0, sum.1))
    }

    /// A request comes.
    pub fn offer(&mut self, now: Ns, ask: Ask) -> Verdict {
        Figures::count(&mut self.figures.offered, ask.class);
        self.figures.offered_prompt_tokens += u64::from(ask.prompt_tokens);
        for replica in &mut self.replicas {
            self.figures.stayed_away += replica.appointments.expire(now);
        }
        let place = self.replicas.iter_mut().find_map(|replica| replica.appointments.take(ask.identity));
        let refusals = place.as_ref().map_or(0, |place| place.refusals);
        let on_time = place.as_ref().is_some_and(|place| now + EARLY >= place.due);
        self.figures.returned += u64::from(on_time);
        self.figures.returned_early += u64::from(refusals > 0 && !on_time);
        let class = ask.class.saturating_sub(refusals);
        let until = place.as_ref().filter(|_| on_time).map_or(Ns(u64::MAX), |place| place.due);
        let rank = Rank { class, until };
        if let Some(never) = self.impossible(&ask) {
            self.figures.impossible += 1;
            return Verdict::Impossible(never);
        }
        let behind = !on_time && self.waiting.iter().any(|other| other.rank.class <= class);
        let (replica, expected, look) = self.best(now, &ask, rank);
        let short = look.short.or(behind.then_some(Reason::Queue));
        let Some(reason) = short else {
            self.figures.returned_admitted += u64::from(on_time);
            return Verdict::Admitted(self.admit(now, replica, ask, expected, &look, Ns::ZERO, None));
        };
        if self.settings.shadow {
            *self.figures.refused.entry((reason, ask.class)).or_insert(0) += 1;
            return Verdict::Admitted(self.admit(now, replica, ask, expected, &look, Ns::ZERO, Some(reason)));
        }
        let due = self.earliest(now, &ask, rank);
        // Who kept an appointment is not sent away for the forecast's error, which grows with what was forecast.
        let told = place.filter(|_| on_time).map_or(Ns::ZERO, |place| {
            let error = Ns::from_secs(place.told.secs() * STRETCH.1).max(GRACE);
            error.min(Ns(self.settings.ttft_budget.0 / 4))
        });
        let patience = self.settings.max_wait.max(told);
        let soon = due.is_some_and(|(_, _, after)| after <= patience);
        if patience > Ns::ZERO && soon && self.waiting.len() < self.settings.max_waiting {
            let ticket = Ticket(self.number());
            self.waiting.push(Waiter { ticket, ask, rank, refusals, since: now, on_time });
            return Verdict::Waiting(ticket, now + patience);
        }
        Verdict::Refused(self.refuse(now, ask, refusals, reason, &look, due))
    }

    /// Those who waited and may go now.
    pub fn grants(&mut self, now: Ns) -> Vec<(Ticket, Grant)> {
        let mut granted = Vec::new();
        if self.waiting.is_empty() {
            return granted;
        }
        let urgency = |waiter: &Waiter| {
            let aged = (now.since(waiter.since).0 / AGING.0) as u8;
            (waiter.rank.class.saturating_sub(aged), waiter.ticket)
        };
        self.waiting.sort_by_key(urgency);
        while let Some(first) = self.waiting.first() {
            let (replica, expected, look) = self.best(now, &first.ask, first.rank);
            if look.short.is_some() {
                break;
            }
            let Waiter { ticket, ask, since, on_time, .. } = self.waiting.remove(0);
            self.figures.returned_admitted += u64::from(on_time);
            let waited = now.since(since);
            granted.push((ticket, self.admit(now, replica, ask, expected, &look, waited, None)));
        }
        granted
    }

    /// A waiting request's time is up: its refusal. Absent when it does not wait any more.
    pub fn give_up(&mut self, now: Ns, ticket: Ticket) -> Option<Refusal> {
        let at = self.waiting.iter().position(|waiter| waiter.ticket == ticket)?;
        let Waiter { ask, rank, refusals, .. } = self.waiting.remove(at);
        let (_, _, look) = self.best(now, &ask, rank);
        let due = self.earliest(now, &ask, rank);
        Some(self.refuse(now, ask, refusals, Reason::Queue, &look, due))
    }

    /// The client of a waiting request went away.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.waiting.retain(|waiter| waiter.ticket != ticket);
    }

    /// Tokens of an admitted request came.
    pub fn tokens(&mut self, now: Ns, lease: LeaseId, tokens: u32) {
        let Some(replica) = self.leases.get(&lease).and_then(|at| self.replicas.get_mut(*at)) else { return };
        let Some(entry) = replica.ledger.get_mut(lease) else { return };
        entry.generated = entry.generated.saturating_add(tokens);
        let sequences = entry.ask.sequences.max(1);
        match entry.last_token {
            None => {
                entry.first_token = Some(now);
                let prompt = u32::try_from(entry.to_prefill()).unwrap_or(u32::MAX);
                replica.pace.first_token(now, entry.admitted, prompt, entry.predicted_ttft);
            }
            Some(last) => replica.pace.tokens(now, now.since(last), tokens, sequences),
        }
        entry.last_token = Some(now);
        let each = entry.generated / sequences;
        if each >= entry.expected {
            let longer = self
                .routes
                .get(&entry.ask.route)
                .and_then(|route| route.quantile(self.settings.output_quantile, each));
            let (ask, expected) = (entry.ask.clone(), longer);
            let cap = replica.cap(&ask).unwrap_or(UNBOUNDED_OUTPUT.max(each.saturating_mul(2)));
            if let Some(entry) = replica.ledger.get_mut(lease) {
                entry.expected = expected.unwrap_or(cap).min(cap).max(each + 1);
            }
        }
    }

    /// The prompt of an admitted request turned out to have so many tokens.
    pub fn correct_prompt(&mut self, lease: LeaseId, prompt_tokens: u32) {
        let Some(replica) = self.leases.get(&lease).and_then(|at| self.replicas.get_mut(*at)) else { return };
        if let Some(entry) = replica.ledger.get_mut(lease) {
            entry.ask.prompt_tokens = prompt_tokens.max(1);
        }
    }

    /// An admitted request ended; `output_tokens` is what the server counted for all of its outputs, where it said so.
    pub fn ended(&mut self, now: Ns, lease: LeaseId, end: End, output_tokens: Option<u32>) {
        let Some(at) = self.leases.remove(&lease) else { return };
        let Some(entry) = self.replicas.get_mut(at).and_then(|replica| replica.ledger.leave(lease)) else {
            return;
        };
        self.figures.ended += 1;
        let first = if entry.ask.streams { entry.first_token } else { Some(now) };
        let in_time = first.is_some_and(|first| first.since(entry.admitted) <= self.settings.ttft_budget);
        let tokens = output_tokens.unwrap_or(entry.generated) / entry.ask.sequences.max(1);
        if end == End::Failed || tokens == 0 {
            return;
        }
        let finished = end == End::Whole || entry.ask.max_output.is_some_and(|cap| tokens >= cap);
        self.figures.good += u64::from(finished && in_time);
        self.routes.entry(entry.ask.route).or_default().ended(tokens, end == End::Cut);
    }

    /// The server refused an admitted request by itself (503 of its queue limits): the lease ends, and its client is
    /// told when to come again.
    pub fn refused_upstream(&mut self, now: Ns, lease: LeaseId) -> Option<Refusal> {
        let at = self.leases.remove(&lease)?;
        let entry = self.replicas.get_mut(at)?.ledger.leave(lease)?;
        self.figures.ended += 1;
        let ask = entry.ask;
        let rank = Rank { class: ask.class, until: Ns(u64::MAX) };
        let (_, _, look) = self.best(now, &ask, rank);
        let due = self.earliest(now, &ask, rank);
        Some(self.refuse(now, ask, 0, Reason::Upstream, &look, due))
    }

    /// Takes in what a server's metrics say.
    pub fn observe(&mut self, now: Ns, replica: usize, seen: Observation) {
        if let Some(replica) = self.replicas.get_mut(replica) {
            replica.observe(now, seen);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Expected tokens of each output on a server.
    fn expected(&self, replica: &Replica, ask: &Ask) -> u32 {
        let learned =
            self.routes.get(&ask.route).and_then(|route| route.quantile(self.settings.output_quantile, 0));
        let pool = replica.capacity.pool_tokens();
        let most = replica.cap(ask).or_else(|| {
            let left = pool?.saturating_sub(u64::from(ask.prompt_tokens)).max(1);
            u32::try_from(left).ok()
        });
        let most = most.unwrap_or(UNBOUNDED_OUTPUT);
        learned.or(self.settings.expected_output).unwrap_or(most).clamp(1, most)
    }

    /// The request is larger than every pool.
    fn impossible(&self, ask: &Ask) -> Option<Impossible> {
        let mut largest: Option<Impossible> = None;
        for replica in &self.replicas {
            let (pool, usable) = (replica.capacity.pool_tokens()?, replica.capacity.usable_blocks?);
            let expected = self.expected(replica, ask);
            if replica.blocks_of(ask, expected) <= f64::from(usable) {
                return None;
            }
            let output_tokens = u64::from(expected) * u64::from(ask.sequences);
            if largest.is_none_or(|other| other.pool_tokens < pool) {
                let prompt_tokens = ask.prompt_tokens;
                largest = Some(Impossible { prompt_tokens, output_tokens, pool_tokens: pool });
            }
        }
        largest
    }

    /// The server with the most room: one that can be reached, and where it fits, if there is one.
    fn best(&self, now: Ns, ask: &Ask, rank: Rank) -> (usize, u32, Look) {
        let looks = self.replicas.iter().enumerate().map(|(at, replica)| {
            let expected = self.expected(replica, ask);
            (at, expected, replica.look(now, ask, expected, rank, &self.settings))
        });
        let order = |look: &(usize, u32, Look)| (self.replicas[look.0].down, look.2.short.is_some());
        let best = looks
            .min_by(|left, right| order(left).cmp(&order(right)).then(left.2.load.total_cmp(&right.2.load)));
        best.unwrap_or((0, 1, Look::NONE))
    }

    /// Where and when it fits first, from now; the server, the expected output, the time.
    fn earliest(&self, now: Ns, ask: &Ask, rank: Rank) -> Option<(usize, u32, Ns)> {
        let times = self.replicas.iter().enumerate().filter_map(|(at, replica)| {
            let expected = self.expected(replica, ask);
            let after = replica.when(now, Ns::ZERO, ask, expected, rank, &self.settings)?;
            Some((at, expected, after))
        });
        times.min_by_key(|(at, _, after)| (self.replicas[*at].down, *after))
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one decision")]
    fn admit(
        &mut self,
        now: Ns,
        replica: usize,
        ask: Ask,
        expected: u32,
        look: &Look,
        waited: Ns,
        shadowed: Option<Reason>,
    ) -> Grant {
        Figures::count(&mut self.figures.admitted, ask.class);
        self.figures.waited(waited);
        let lease = LeaseId(self.number());
        self.leases.insert(lease, replica);
        if let Some(replica) = self.replicas.get_mut(replica) {
            replica.enter(now, lease, ask, expected, look.ttft);
        }
        Grant { lease, replica, shadowed }
    }

    fn refuse(
        &mut self,
        now: Ns,
        ask: Ask,
        refusals: u8,
        reason: Reason,
        look: &Look,
        due: Option<(usize, u32, Ns)>,
    ) -> Refusal {
        *self.figures.refused.entry((reason, ask.class)).or_insert(0) += 1;
        let blocks = |count: Option<f64>| count.map(|count| count as u32);
        let mut refusal = Refusal {
            reason,
            retry_after: None,
            kept: false,
            need_blocks: blocks(look.need_blocks),
            peak_blocks: blocks(look.peak_blocks),
            limit_blocks: blocks(look.limit_blocks),
            ttft: look.ttft,
        };
        let Some((replica, expected, after)) = due else { return refusal };
        let share = STRETCH.0 + (STRETCH.1 - STRETCH.0) * self.random();
        let stretched = Ns::from_secs(after.max(SOONEST).secs() * (1.0 + share));
        // Later it must fit, too, between those who were told to come then.
        let rank = Rank { class: ask.class.saturating_sub(refusals), until: Ns(u64::MAX) };
        let fits = self
            .replicas
            .get(replica)
            .and_then(|replica| replica.when(now, stretched, &ask, expected, rank, &self.settings));
        let after = fits.unwrap_or(stretched).max(stretched);
        refusal.retry_after = Some(after);
        self.figures.retry_after_s.add(&RETRY_AFTER_BOUNDS_S, after.secs());
        if after <= FURTHEST
            && let Some(replica) = self.replicas.get_mut(replica)
        {
            let refusals = refusals.saturating_add(1);
            refusal.kept =
                replica.keep(Appointment { ask, expected, due: now + after, told: after, refusals });
        }
        refusal
    }

    /// 0..1, by SplitMix64 (S. Vigna).
    fn random(&mut self) -> f64 {
        self.draw = self.draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.draw;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

struct Sum(u64, u64);

impl std::iter::Sum<(u64, u64)> for Sum {
    fn sum<I: Iterator<Item = (u64, u64)>>(rooms: I) -> Self {
        rooms.fold(Self(0, 0), |sum, room| Self(sum.0 + room.0, sum.1 + room.1))
    }
}
