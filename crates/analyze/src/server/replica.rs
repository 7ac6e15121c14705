//! The known series of each replica, picked from everything that was scraped.

use precipice_dialect::{self as dialect, Engine, Meaning, Part};
use precipice_record::{MARK, Ns, Run, Samples, Series, UP};
use std::collections::BTreeMap;

/// Values of one series, in order of time.
pub(crate) type Track = Vec<(Ns, f64)>;

/// One engine behind one metrics URL.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    /// Series by what they measure; several of one meaning differ in their labels.
    tracks: BTreeMap<(Meaning, Part), Vec<(Series, Track)>>,
    /// When its scrapes came back, marks among them, rising.
    pub(crate) scrapes: Vec<Ns>,
    /// Those of them that were made to find an edge of the load: they are no samples.
    marks: Vec<Ns>,
    /// Ticks that brought nothing.
    pub(crate) gaps: Vec<Ns>,
}

impl Replica {
    /// All replicas of a run: those that were scraped, else the one whose steps are known.
    pub(crate) fn all(run: &Run) -> Vec<Self> {
        let scraped = Self::scraped(&run.samples);
        if scraped.iter().any(|replica| replica.has(Meaning::Running)) {
            return scraped;
        }
        Self::stepped(run).map_or(scraped, |stepped| vec![stepped])
    }

    /// By metrics URL and the label that numbers the engines behind it.
    fn scraped(samples: &Samples) -> Vec<Self> {
        let chosen = choose(&samples.series);
        let is =
            |name: &str| -> Vec<bool> { samples.series.iter().map(|series| series.name == name).collect() };
        let (ups, marks) = (is(UP), is(MARK));
        let mut rows: Vec<Track> = vec![Vec::new(); samples.series.len()];
        for index in 0..samples.len() {
            let id = samples.id[index] as usize;
            if chosen.get(id).is_some_and(Option::is_some) || ups[id] || marks[id] {
                rows[id].push((samples.time[index], samples.value[index]));
            }
        }
        let mut replicas: BTreeMap<(u16, String), Self> = BTreeMap::new();
        let mut ticks: BTreeMap<u16, (Track, Vec<Ns>)> = BTreeMap::new();
        // A series without the label is the whole page's (a limit of the front end, the process).
        let mut shared = Vec::new();
        for (id, (series, track)) in samples.series.iter().zip(rows).enumerate() {
            if let Some(known) = chosen[id].filter(|_| !track.is_empty()) {
                let label = known.engine.and_then(Engine::replica_label);
                match label.and_then(|label| series.labels.get(label)) {
                    Some(engine) => {
                        let replica = replicas.entry((series.source, engine.clone())).or_default();
                        replica.put(known, series, track);
                    }
                    None => shared.push((known, series, track)),
                }
            } else if ups[id] {
                ticks.entry(series.source).or_default().0 = track;
            } else if marks[id] {
                ticks.entry(series.source).or_default().1 = track.into_iter().map(|row| row.0).collect();
            }
        }
        // Series of the process alone make no engine.
        shared.sort_by_key(|(known, ..)| known.engine.is_none());
        for (known, series, track) in shared {
            let first = (series.source, String::new())..=(series.source, "\u{10ffff}".to_owned());
            let replica = replicas.range_mut(first).next().map(|(_, replica)| replica);
            if let Some(replica) = replica {
                replica.put(known, series, track);
            } else if known.engine.is_some() {
                replicas.entry((series.source, String::new())).or_default().put(known, series, track);
            }
        }
        for ((source, _), replica) in &mut replicas {
            replica.set_ticks(ticks.get(source));
        }
        replicas.into_values().collect()
    }

    fn put(&mut self, known: dialect::Known, series: &Series, track: Track) {
        self.tracks.entry((known.meaning, known.part)).or_default().push((series.clone(), track));
    }

    fn set_ticks(&mut self, ticks: Option<&(Track, Vec<Ns>)>) {
        if let Some((ticks, marks)) = ticks {
            let at =
                |wanted: bool| ticks.iter().filter(move |tick| (tick.1 > 0.0) == wanted).map(|tick| tick.0);
            self.scrapes = at(true).collect();
            self.marks.clone_from(marks);
            self.gaps = at(false).filter(|&time| !self.is_mark(time)).collect();
        } else {
            let all = self.tracks.values().flatten().map(|(_, track)| track);
            self.scrapes =
                all.max_by_key(|track| track.len()).into_iter().flatten().map(|row| row.0).collect();
        }
    }

    fn is_mark(&self, time: Ns) -> bool {
        self.marks.binary_search(&time).is_ok()
    }

    /// When it was sampled: its scrapes without the marks.
    pub(crate) fn samples(&self) -> Vec<Ns> {
        self.scrapes.iter().copied().filter(|&time| !self.is_mark(time)).collect()
    }

    /// A simulated or logged engine: every step is a scrape.
    fn stepped(run: &Run) -> Option<Self> {
        let mut preempted = 0.0;
        let mut tracks: BTreeMap<Meaning, Track> = BTreeMap::new();
        for step in &run.steps {
            let mut put = |meaning, value: Option<f64>| {
                if let Some(value) = value {
                    tracks.entry(meaning).or_default().push((step.time, value));
                }
            };
            put(Meaning::Running, step.running.map(f64::from));
            put(Meaning::Waiting, step.waiting.map(f64::from));
            put(Meaning::KvUsage, step.kv_usage.map(f64::from));
            preempted += f64::from(step.preemptions.unwrap_or(0));
            put(Meaning::Preemptions, step.preemptions.map(|_| preempted));
        }
        if !tracks.contains_key(&Meaning::Running) {
            return None;
        }
        let mut replica =
            Self { scrapes: run.steps.iter().map(|step| step.time).collect(), ..Self::default() };
        for (meaning, track) in tracks {
            let part = if meaning == Meaning::Preemptions { Part::Counter } else { Part::Gauge };
            let series = Series { name: String::new(), labels: BTreeMap::new(), source: 0 };
            replica.tracks.insert((meaning, part), vec![(series, track)]);
        }
        Some(replica)
    }

    /// Whether the gauge is exposed.
    pub(crate) fn has(&self, meaning: Meaning) -> bool {
        self.tracks.contains_key(&(meaning, Part::Gauge))
    }

    /// All series of a meaning.
    pub(crate) fn series(&self, meaning: Meaning, part: Part) -> &[(Series, Track)] {
        self.tracks.get(&(meaning, part)).map(Vec::as_slice).unwrap_or_default()
    }

    /// All series that only grow while the process lives.
    pub(crate) fn growing(&self) -> impl Iterator<Item = &(Series, Track)> {
        let grows = |part: Part| matches!(part, Part::Counter | Part::Sum | Part::Count);
        self.tracks.iter().filter(move |((_, part), _)| grows(*part)).flat_map(|(_, series)| series)
    }

    /// The value of a gauge at the scrape nearest to `time` and no further than `reach` from it; a mark counts at its own
    /// moment alone. Absent where there is none, or where it is not a number.
    pub(crate) fn gauge_at(&self, meaning: Meaning, time: Ns, reach: Ns) -> Option<f64> {
        let series = self.series(meaning, Part::Gauge);
        let mut sum = None;
        for (_, track) in series {
            let after = track.partition_point(|row| row.0 < time);
            let near = [after.checked_sub(1), Some(after)]
                .into_iter()
                .flatten()
                .filter_map(|index| track.get(index))
                .filter(|row| row.0 == time || !self.is_mark(row.0));
            let away = |row: &(Ns, f64)| row.0.since(time).max(time.since(row.0));
            let &(at, value) = near.min_by_key(|row| away(row))?;
            if away(&(at, value)) > reach || !value.is_finite() {
                return None;
            }
            sum = Some(sum.unwrap_or(0.0) + value);
        }
        // Shares of several pools average; numbers of requests add up.
        let several = series.len().max(1) as f64;
        if meaning == Meaning::KvUsage { sum.map(|sum| sum / several) } else { sum }
    }

    /// How much all counters of a meaning grew between two scrapes; absent where there is none, or one fell.
    pub(crate) fn counted_between(&self, meaning: Meaning, from: Ns, to: Ns) -> Option<f64> {
        let value = |track: &Track, time: Ns| {
            let index = track.partition_point(|row| row.0 <= time).checked_sub(1)?;
            Some(track[index].1)
        };
        let series = self.series(meaning, Part::Counter);
        let grown = series.iter().map(|(_, track)| {
            let grown = value(track, to)? - value(track, from).unwrap_or(0.0);
            Some(grown).filter(|&grown| grown >= 0.0)
        });
        (!series.is_empty()).then(|| grown.sum::<Option<f64>>()).flatten()
    }
}

/// What each series is used as. Every series that the dialect knows is kept, buckets apart: what none reads costs a
/// little memory, and what one reads is never absent by a list. Of several names for one thing (an old and a new one on
/// the same page) the current one is used.
fn choose(series: &[Series]) -> Vec<Option<dialect::Known>> {
    let mut best: BTreeMap<(u16, Meaning, Part), usize> = BTreeMap::new();
    let mut ranked = Vec::with_capacity(series.len());
    for one in series {
        let known = dialect::known(&one.name).filter(|known| known.part != Part::Bucket);
        let rank = known.map(|known| rank(known.engine, known.meaning, known.part, &one.name));
        if let (Some(known), Some(rank)) = (known, rank) {
            let kept = best.entry((one.source, known.meaning, known.part)).or_insert(rank);
            *kept = rank.min(*kept);
        }
        ranked.push(known.zip(rank));
    }
    let used = |(one, ranked): (&Series, Option<(dialect::Known, usize)>)| {
        let (known, rank) = ranked?;
        (best.get(&(one.source, known.meaning, known.part)) == Some(&rank)).then_some(known)
    };
    series.iter().zip(ranked).map(used).collect()
}

fn rank(engine: Option<Engine>, meaning: Meaning, part: Part, name: &str) -> usize {
    dialect::names(engine, meaning, part).position(|known| known == name).unwrap_or(usize::MAX)
}
