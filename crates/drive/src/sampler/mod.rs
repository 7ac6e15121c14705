//! The sampler: reads `/metrics` from before the first to after the last request.
//!
//! Each source (replica) has a thread and a connection of its own, so that a slow one delays no other and no
//! request. Scrapes are due at absolute ticks. A scrape that fails, or a tick that passes while the one before is
//! still under way, is a row with `up` 0 at the time it was due: a gap that is seen, never a value that is made up.
//!
//! Before and after the load every source is scraped apart from the ticks, so that the counters are known at its edges.
//! Such a scrape is a mark (a row of the series [`MARK`]) and no sample.
//!
//! | module | holds |
//! | --- | --- |
//! | [`page`] | one source's pages: new series, changes |

pub(crate) mod page;

use crate::clock::{Clock, ns};
use crate::fetch::Fetcher;
use crate::handle::{ServerNow, Shared};
use crate::load::outlet::Batch;
use crate::target::{Origin, TargetError, TargetOptions, Url};
use page::{Pages, Totals};
use precipice_record::{MARK, Ns, SCRAPE_SECONDS, Series, UP};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Largest page that is read.
pub const PAGE_LIMIT: usize = precipice_wire::prometheus::MAX_PAGE_BYTES;
/// How long a scrape may take, unless the distance of the ticks is longer.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(10);
/// Numbers of the sampler's own series within a source.
const UP_ID: u32 = 0;
const SECONDS_ID: u32 = 1;
const MARK_ID: u32 = 2;
const RESERVED: u32 = 3;

/// One metrics URL.
#[derive(Debug, Clone)]
pub struct MetricsSource {
    /// Host.
    pub origin: Origin,
    /// Path, query included.
    pub path: String,
}

impl MetricsSource {
    /// The URL as given with `--metrics-url`; headers, key and certificates are the target's.
    ///
    /// # Errors
    /// [`TargetError`]
    pub fn new(url: &str, options: &TargetOptions) -> Result<Self, TargetError> {
        let url = Url::parse(url)?;
        let path = if url.path.is_empty() { "/metrics" } else { &url.path };
        let path = match &url.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        };
        Ok(Self { origin: Origin::resolve(url, options)?, path })
    }

    /// The URL.
    pub fn url(&self) -> String {
        let mut url = self.origin.url.clone();
        self.path.split('?').next().unwrap_or_default().clone_into(&mut url.path);
        url.to_string()
    }
}

/// What one tick of one source brought, on its way to the sink.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub source: u16,
    /// Series seen for the first time; their numbers count on from the last.
    pub series: Vec<Series>,
    /// Ticks that passed without a scrape.
    pub gaps: Vec<Ns>,
    pub time: Ns,
    /// Number of the series within the source, and value.
    pub rows: Vec<(u32, f64)>,
}

/// What one source's thread found in all.
#[derive(Debug, Default)]
pub(crate) struct SourceReport {
    /// Why the first scrape that failed did.
    pub first_error: Option<String>,
    pub cache_config: Option<BTreeMap<String, String>>,
}

enum Command {
    /// Scrape now and say what was found.
    Mark(Sender<Option<Totals>>),
    Finish,
}

/// All sources' threads.
pub(crate) struct Sampler {
    sources: Vec<(Sender<Command>, JoinHandle<SourceReport>)>,
    latest: Arc<Latest>,
}

/// The latest totals of each source, for the progress bar.
#[derive(Debug, Default)]
struct Latest {
    sources: Mutex<Vec<(Totals, Totals)>>,
}

impl Latest {
    fn set(&self, source: u16, totals: Totals, shared: &Shared) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = sources.get_mut(usize::from(source)) {
            slot.1 = totals;
        }
        let mut sum = ServerNow::default();
        let add = |to: &mut Option<f64>, value: Option<f64>| {
            if let Some(value) = value {
                *to = Some(to.unwrap_or(0.0) + value);
            }
        };
        for (start, now) in sources.iter() {
            let now = now.now(start);
            add(&mut sum.running, now.running);
            add(&mut sum.waiting, now.waiting);
            add(&mut sum.preemptions, now.preemptions);
            add(&mut sum.generation_tokens, now.generation_tokens);
            sum.kv_usage = match (sum.kv_usage, now.kv_usage) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        shared.server(sum);
    }

    /// Counters of the progress bar count from here.
    fn start_here(&self) {
        for slot in self.sources.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            slot.0 = slot.1;
        }
    }
}

impl Sampler {
    /// Starts to scrape, every `every`.
    pub(crate) fn start(
        sources: &[MetricsSource],
        every: Duration,
        clock: Clock,
        shared: &Arc<Shared>,
        to: &SyncSender<Batch>,
    ) -> Self {
        let latest = Arc::new(Latest { sources: Mutex::new(vec![Default::default(); sources.len()]) });
        let sources = sources
            .iter()
            .zip(0u16..)
            .map(|(source, number)| {
                let (order, orders) = mpsc::channel();
                let scraper = Scraper {
                    source: number,
                    path: source.path.clone(),
                    fetcher: Fetcher::new(source.origin.clone()),
                    every,
                    clock,
                    shared: Arc::clone(shared),
                    latest: Arc::clone(&latest),
                    to: to.clone(),
                    pages: Pages::new(number, RESERVED),
                    report: SourceReport::default(),
                    introduced: false,
                };
                (order, thread::spawn(move || scraper.run(&orders)))
            })
            .collect();
        Self { sources, latest }
    }

    /// Scrapes every source now; absent where that failed.
    pub(crate) fn mark(&self) -> Vec<Option<Totals>> {
        let replies: Vec<_> = self
            .sources
            .iter()
            .map(|(order, _)| {
                let (reply, answer) = mpsc::channel();
                order.send(Command::Mark(reply)).ok().map(|()| answer)
            })
            .collect();
        replies.into_iter().map(|answer| answer.and_then(|answer| answer.recv().ok()).flatten()).collect()
    }

    /// The load begins: counters shown while it runs count from here.
    pub(crate) fn load_starts(&self) {
        self.latest.start_here();
    }

    /// Stops.
    pub(crate) fn finish(self) -> Vec<SourceReport> {
        self.sources
            .into_iter()
            .map(|(order, thread)| {
                // An error says that the thread ended by itself.
                order.send(Command::Finish).ok();
                thread.join().unwrap_or_default()
            })
            .collect()
    }
}

/// The thread of one source.
struct Scraper {
    source: u16,
    path: String,
    fetcher: Fetcher,
    every: Duration,
    clock: Clock,
    shared: Arc<Shared>,
    latest: Arc<Latest>,
    to: SyncSender<Batch>,
    pages: Pages,
    report: SourceReport,
    introduced: bool,
}

impl Scraper {
    fn run(mut self, orders: &Receiver<Command>) -> SourceReport {
        let every = ns(self.every).0.max(1);
        let mut due = self.clock.now();
        loop {
            let now = self.clock.now();
            let wait = Duration::from_nanos(due.since(now).0);
            match orders.recv_timeout(wait) {
                Ok(Command::Mark(reply)) => {
                    let now = self.clock.now();
                    let totals = self.scrape(now, Vec::new(), true);
                    // An error says that nobody waits any more.
                    reply.send(totals).ok();
                }
                Ok(Command::Finish) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    // Ticks that passed while the thread was busy with the scrape before.
                    let missed = self.clock.now().since(due).0 / every;
                    let gaps: Vec<Ns> = (0..missed).map(|tick| Ns(due.0 + tick * every)).collect();
                    due = Ns(due.0 + missed * every);
                    self.scrape(due, gaps, false);
                    due = Ns(due.0 + every);
                }
            }
        }
        self.report.cache_config = self.pages.cache_config.take();
        self.report
    }

    /// One scrape that was due then. `gaps` are the ticks before it that were missed.
    fn scrape(&mut self, due: Ns, gaps: Vec<Ns>, mark: bool) -> Option<Totals> {
        let mut scrape = Scrape { source: self.source, gaps, ..Scrape::default() };
        if !self.introduced {
            self.introduced = true;
            let own =
                |name: &str| Series { name: name.to_owned(), labels: BTreeMap::new(), source: self.source };
            scrape.series = vec![own(UP), own(SCRAPE_SECONDS), own(MARK)];
        }
        let asked = self.clock.now();
        let timeout = self.every.max(SCRAPE_TIMEOUT);
        let fetched = self.fetcher.fetch("GET", &self.path, None, timeout, PAGE_LIMIT);
        let time = self.clock.now();
        let page = fetched.map_err(|error| error.to_string()).and_then(|reply| match reply.head.status {
            200 => self.pages.read(&reply.body).map_err(|error| error.to_string()),
            status => Err(format!("status {status}")),
        });
        let totals = match page {
            Ok(page) => {
                scrape.time = time;
                scrape.series.extend(page.series);
                scrape.rows = page.rows;
                scrape.rows.push((UP_ID, 1.0));
                scrape.rows.push((SECONDS_ID, time.since(asked).secs()));
                if mark {
                    scrape.rows.push((MARK_ID, 1.0));
                }
                self.latest.set(self.source, page.totals, &self.shared);
                Some(page.totals)
            }
            Err(error) => {
                scrape.gaps.push(due);
                if mark {
                    scrape.time = due;
                    scrape.rows.push((MARK_ID, 1.0));
                }
                self.report.first_error.get_or_insert(error);
                None
            }
        };
        // An error says that the run is over.
        self.to.send(Batch { samples: Some(scrape), ..Batch::default() }).ok();
        totals
    }
}
