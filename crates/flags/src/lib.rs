//! The flags of `precipice run`, each in exactly one group.
//!
//! The command line (`cli`) and the commands that a report suggests (`report`) read this one list. A test of the
//! binary holds it against clap's own command: a flag that is missing here, or that exists no more, fails it.
//!
//! | module | holds |
//! | --- | --- |
//! | `list` | the flags |
//! | `fact` | what a run's manifest says where a flag was not given |
//! | `origin` | where the value of a setting came from |

mod fact;
mod list;
mod origin;

pub use list::FLAGS;
pub use origin::Origin;

use precipice_record::Manifest;

/// What a flag is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What is asked: requests, lengths, prompts.
    Load,
    /// When it is asked.
    Pace,
    /// How long the client waits, and how often it tries.
    Client,
    /// Which server is asked, and in which form.
    Target,
    /// The built-in engine, by vLLM's names.
    Engine,
    /// What is read of the server beside the load.
    Sampling,
    /// Where results go and how they look: nothing that is measured depends on it.
    Output,
}

/// What a flag does when a real server is driven (`--url`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithUrl {
    /// It does what it says.
    Acts,
    /// It changes nothing at the server: it is recorded as what the user says of a server that does not say it.
    Stated,
    /// It is about the built-in engine alone and refused.
    Refused,
}

/// Commands beside `run` that take flags of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `precipice simulate`
    Simulate,
    /// `precipice plan`
    Plan,
    /// `precipice sweep`
    Sweep,
}

/// Reads off a manifest what a flag would have said; absent where the manifest does not know.
pub type Fact = fn(&Manifest) -> Option<String>;

/// A flag of `precipice run`.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its long name.
    pub name: &'static str,
    /// What it is about.
    pub group: Group,
    /// It takes no value.
    pub switch: bool,
    /// What it does when a real server is driven.
    pub with_url: WithUrl,
    /// It does something without `--url`, where the built-in engine runs.
    pub simulated: bool,
    /// The planner takes it, where it takes its group.
    pub planned: bool,
    /// vLLM has a flag of this name, so that a restarted server can be given it.
    pub vllm: bool,
    /// What a manifest says in its place.
    pub fact: Option<Fact>,
}

impl Flag {
    /// The flag of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FLAGS.iter().find(|flag| flag.name == name)
    }

    /// What a manifest says in the place of this flag, unless `given` flags say it in another way.
    pub fn known(&self, run: &Manifest, given: impl Fn(&str) -> bool) -> Option<String> {
        let otherwise = match self.name {
            // Lengths that a file has are not a distribution to draw from.
            "input-tokens" | "output-tokens" => given("data"),
            "burstiness" => given("arrivals"),
            "gpu" => given("profile") || given("gpu-memory"),
            _ => false,
        };
        self.fact.filter(|_| !otherwise).and_then(|fact| fact(run))
    }

    /// Whether a command takes this flag with this meaning.
    pub fn is_of(&self, command: Command) -> bool {
        use Group::{Client, Engine, Load, Output, Pace, Sampling, Target};
        match command {
            // The `--preset` of a sweep is a set of settings to try.
            Command::Sweep => self.name != "preset",
            Command::Simulate => match self.group {
                Load | Pace | Engine | Output => true,
                Client | Target | Sampling => self.simulated,
            },
            Command::Plan => match self.group {
                Load | Pace | Engine => self.planned,
                Target => {
                    self.simulated
                        || ["url", "api-key-env", "header", "ca-cert", "insecure"].contains(&self.name)
                }
                Sampling => ["metrics-url", "server-log"].contains(&self.name),
                Output => self.name != "no-report",
                Client => false,
            },
        }
    }
}
