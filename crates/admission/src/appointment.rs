//! When refused clients were told to come again.
//!
//! Each refusal that names a time keeps a place in the forecast from then on, so that the next one is told a later time
//! and a newcomer does not take the place away. A place is weighed with the share of clients that came back so far,
//! and is given up shortly after its time.

use crate::ask::Ask;
use precipice_record::Ns;
use std::collections::BTreeMap;

/// After its time a place is kept for so long.
pub(crate) const GRACE: Ns = Ns(2_000_000_000);
/// openai's clients do not wait for longer than this, so no place is kept.
pub(crate) const FURTHEST: Ns = Ns(120_000_000_000);
/// Most places: the forecast walks over them.
const MOST: usize = 1024;
/// What one client that came or stayed away says of the next.
const NEWS: f64 = 1.0 / 32.0;

/// Whose places a request must respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Its urgency: less urgent ones do not hold it up.
    pub(crate) class: u8,
    /// When its own place was due: later ones do not hold it up either, else one that is a moment late would lose its turn.
    pub(crate) until: Ns,
}

/// A place.
#[derive(Debug, Clone)]
pub(crate) struct Appointment {
    pub(crate) ask: Ask,
    /// Expected tokens of each output.
    pub(crate) expected: u32,
    pub(crate) due: Ns,
    /// How long its client was told to wait.
    pub(crate) told: Ns,
    /// How often the request was refused.
    pub(crate) refusals: u8,
}

/// The places of one server.
#[derive(Debug, Clone)]
pub(crate) struct Appointments {
    /// By identity; equal requests have a place each.
    places: BTreeMap<(u64, u64), Appointment>,
    kept: u64,
    come_back: f64,
}

impl Default for Appointments {
    fn default() -> Self {
        // A promise is kept until clients show that they do not come.
        Self { places: BTreeMap::new(), kept: 0, come_back: 1.0 }
    }
}

impl Appointments {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Share of clients that come back.
    pub(crate) fn come_back(&self) -> f64 {
        self.come_back
    }

    fn news(&mut self, came: bool) {
        self.come_back += NEWS * (f64::from(u8::from(came)) - self.come_back);
    }

    /// Gives up the places of those who stayed away; returns how many.
    pub(crate) fn expire(&mut self, now: Ns) -> u64 {
        let before = self.places.len();
        self.places.retain(|_, place| place.due + GRACE >= now);
        let gone = before - self.places.len();
        (0..gone).for_each(|_| self.news(false));
        gone as u64
    }

    /// The request with this identity is here: its place, if it has one.
    pub(crate) fn take(&mut self, identity: u64) -> Option<Appointment> {
        let key = *self.places.range((identity, 0)..=(identity, u64::MAX)).next()?.0;
        self.news(true);
        self.places.remove(&key)
    }

    /// Keeps a place; false when there are too many.
    pub(crate) fn keep(&mut self, place: Appointment) -> bool {
        let room = self.places.len() < MOST;
        if room {
            self.kept += 1;
            self.places.insert((place.ask.identity, self.kept), place);
        }
        room
    }

    /// Places that a request must respect, by time.
    pub(crate) fn before(&self, rank: Rank) -> Vec<&Appointment> {
        let respected = |place: &&Appointment| place.ask.class <= rank.class && place.due <= rank.until;
        let mut places: Vec<&Appointment> = self.places.values().filter(respected).collect();
        places.sort_by_key(|place| place.due);
        places
    }
}
