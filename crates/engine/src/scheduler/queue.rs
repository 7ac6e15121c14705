//! The waiting queues.

use super::request::Request;
use crate::config::Policy;
use std::collections::{BTreeMap, VecDeque};

/// Order under the priority policy.
type Rank = (i32, u64, u64, u32);

/// A queue in the order in which its requests are tried.
#[derive(Debug, Clone)]
pub(crate) enum Queue {
    /// By arrival, the preempted before the new.
    Fcfs(VecDeque<u32>),
    /// By priority, arrival, key and, last, order of entry.
    Priority(BTreeMap<Rank, u32>),
}

/// The rank of a request under the priority policy.
pub(crate) fn rank(request: &Request) -> Rank {
    (request.priority, request.arrival, request.key, request.serial)
}

impl Queue {
    pub(crate) fn new(policy: Policy) -> Self {
        match policy {
            Policy::Fcfs => Self::Fcfs(VecDeque::new()),
            Policy::Priority => Self::Priority(BTreeMap::new()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fcfs(slots) => slots.len(),
            Self::Priority(slots) => slots.len(),
        }
    }

    pub(crate) fn head(&self) -> Option<u32> {
        match self {
            Self::Fcfs(slots) => slots.front().copied(),
            Self::Priority(slots) => slots.first_key_value().map(|(_, slot)| *slot),
        }
    }

    /// Takes the head off.
    pub(crate) fn pop(&mut self) {
        match self {
            Self::Fcfs(slots) => {
                slots.pop_front();
            }
            Self::Priority(slots) => {
                slots.pop_first();
            }
        }
    }

    /// A new request.
    pub(crate) fn push_back(&mut self, slot: u32, request: &Request) {
        match self {
            Self::Fcfs(slots) => slots.push_back(slot),
            Self::Priority(slots) => {
                slots.insert(rank(request), slot);
            }
        }
    }

    /// A preempted request.
    pub(crate) fn push_front(&mut self, slot: u32, request: &Request) {
        match self {
            Self::Fcfs(slots) => slots.push_front(slot),
            Self::Priority(slots) => {
                slots.insert(rank(request), slot);
            }
        }
    }

    /// Takes a request out wherever it stands; says whether it was there.
    pub(crate) fn remove(&mut self, slot: u32, request: &Request) -> bool {
        match self {
            Self::Fcfs(slots) => slots
                .iter()
                .position(|other| *other == slot)
                .is_some_and(|place| slots.remove(place).is_some()),
            Self::Priority(slots) => slots.remove(&rank(request)).is_some(),
        }
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::Fcfs(slots) => Box::new(slots.iter().copied()),
            Self::Priority(slots) => Box::new(slots.values().copied()),
        }
    }
}
