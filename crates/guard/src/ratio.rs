//! Bytes of text to tokens, learned from what servers count.

use std::collections::HashMap;
use std::sync::Arc;

/// Bytes a token before anything was learned: fewer than texts have, so that nothing is let in by mistake.
const CAUTIOUS: f64 = 3.0;
/// Requests after which the ratio of a route is believed.
const ENOUGH: u32 = 8;
/// Routes that are remembered.
const MOST_ROUTES: usize = 1024;

#[derive(Debug, Clone, Copy, Default)]
struct Route {
    bytes: f64,
    tokens: f64,
    requests: u32,
}

/// The ratios of all routes.
#[derive(Debug, Default)]
pub(crate) struct Ratios {
    routes: HashMap<Arc<str>, Route>,
}

impl Ratios {
    /// A server counted so many tokens for so many bytes.
    pub(crate) fn learn(&mut self, route: &Arc<str>, bytes: u64, tokens: u64) {
        if bytes == 0 || tokens == 0 || self.routes.len() >= MOST_ROUTES && !self.routes.contains_key(route) {
            return;
        }
        let entry = self.routes.entry(Arc::clone(route)).or_default();
        // What is older fades, so that a new kind of text is learned within some dozens of requests.
        *entry = Route {
            bytes: entry.bytes.mul_add(0.95, bytes as f64),
            tokens: entry.tokens.mul_add(0.95, tokens as f64),
            requests: entry.requests.saturating_add(1),
        };
    }

    /// The ratio of this route is known.
    pub(crate) fn known(&self, route: &str) -> bool {
        self.routes.get(route).is_some_and(|route| route.requests >= ENOUGH)
    }

    /// Tokens of so many bytes.
    pub(crate) fn tokens(&self, route: &str, bytes: u64) -> u64 {
        let ratio = match self.routes.get(route) {
            Some(route) if route.tokens > 0.0 => route.bytes / route.tokens,
            _ => CAUTIOUS,
        };
        (bytes as f64 / ratio).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Ratios};

    #[test]
    fn a_ratio_is_learned_by_route() {
        let mut ratios = Ratios::default();
        let route: Arc<str> = Arc::from("m /v1/completions");
        assert_eq!(ratios.tokens(&route, 300), 100);
        (0..7).for_each(|_| ratios.learn(&route, 500, 100));
        assert!(!ratios.known(&route));
        ratios.learn(&route, 500, 100);
        assert!(ratios.known(&route) && !ratios.known("other"));
        assert_eq!(ratios.tokens(&route, 1000), 200);
    }
}
