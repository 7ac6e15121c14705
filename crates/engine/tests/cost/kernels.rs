//! Efficiencies of the RTX 4090 from its kernel times: the arithmetic behind `catalog/gpus.toml`.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

const DENSE: &[u8] = include_bytes!("../data/llmservingsim-rtx4090/profile_dense.csv.gz");
const ATTENTION: &[u8] = include_bytes!("../data/llmservingsim-rtx4090/profile_attention.csv.gz");
const SEQUENCE: &str = include_str!("../data/llmservingsim-rtx4090/profile_per_sequence.csv");

/// Data sheet of the RTX 4090.
const BANDWIDTH: f64 = 1.008e12;
const FLOPS: f64 = 165.2e12;

/// The matrices of a layer of Llama-3.1-8B: name, parameters.
pub(crate) const MATRICES: [(&str, f64); 4] = [
    ("qkv_proj", 4096.0 * 6144.0),
    ("o_proj", 4096.0 * 4096.0),
    ("gate_up_proj", 4096.0 * 28672.0),
    ("down_proj", 14336.0 * 4096.0),
];
const QUERY_BYTES: f64 = 32.0 * 128.0 * 2.0 * 2.0;
const KV_BYTES: f64 = 8.0 * 128.0 * 2.0 * 2.0;
/// Operations of one new token and one token of context in one layer.
const PAIR: f64 = 4.0 * 32.0 * 128.0;

/// Kernel times in seconds.
pub(crate) struct Kernels {
    dense: BTreeMap<(String, u32), f64>,
    sequence: BTreeMap<(String, u32), f64>,
    /// By chunk, cached context of the chunk, decodes, context of each decode.
    pub(crate) attention: BTreeMap<(u32, u32, u32, u32), f64>,
}

fn text(gzip: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(gzip).read_to_string(&mut text).unwrap();
    text
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

impl Kernels {
    pub(crate) fn read() -> Self {
        let by_count = |text: &str| {
            rows(text)
                .map(|row| {
                    ((row[0].to_owned(), row[1].parse().unwrap()), row[2].parse::<f64>().unwrap() * 1e-6)
                })
                .collect()
        };
        let attention = rows(&text(ATTENTION))
            .map(|row| {
                let number = |at: usize| row[at].parse::<u32>().unwrap();
                ((number(0), number(1), number(2), number(3)), row[4].parse::<f64>().unwrap() * 1e-6)
            })
            .collect();
        Self { dense: by_count(&text(DENSE)), sequence: by_count(SEQUENCE), attention }
    }

    pub(crate) fn dense(&self, layer: &str, tokens: u32) -> f64 {
        self.dense[&(layer.to_owned(), tokens)]
    }

    pub(crate) fn sequence(&self, layer: &str, sequences: u32) -> f64 {
        self.sequence[&(layer.to_owned(), sequences)]
    }

    /// All matrices of a layer.
    pub(crate) fn matrices(&self, tokens: u32) -> f64 {
        MATRICES.iter().map(|(name, _)| self.dense(name, tokens)).sum()
    }

    /// Two norms, rotary embedding, activation.
    pub(crate) fn elementwise(&self, tokens: u32) -> f64 {
        2.0 * self.dense("layernorm", tokens)
            + self.dense("rotary_emb", tokens)
            + self.dense("act_fn", tokens)
    }

    pub(crate) fn tokens(&self) -> Vec<u32> {
        self.dense.keys().filter(|(name, _)| name == "qkv_proj").map(|(_, tokens)| *tokens).collect()
    }

    /// What the catalog calls by these names, in its order.
    pub(crate) fn efficiencies(&self) -> Vec<(&'static str, f64)> {
        let (start, slope) =
            line(&MATRICES.map(|(name, parameters)| (2.0 * parameters, self.dense(name, 1))));
        let parameters: f64 = MATRICES.iter().map(|(_, parameters)| parameters).sum();
        let flops = 2.0 * parameters * 2048.0 / (self.matrices(2048) - 4.0 * start) / FLOPS;
        let elementwise_bytes = 2.0 * (8.0 * 4096.0 + 2.0 * 40.0 * 128.0 + 3.0 * 14336.0);
        let elementwise = elementwise_bytes * 2048.0 / self.elementwise(2048) / BANDWIDTH;
        let decode = |sequences: u32, context: u32| self.attention[&(0, 0, sequences, context)];
        let chunk = |tokens: u32, cached: u32| self.attention[&(tokens, cached, 0, 0)];
        let reads = [64, 128, 256].map(|sequences| {
            let grown = decode(sequences, 16384) - decode(sequences, 2048);
            f64::from(sequences) * 14336.0 * KV_BYTES / grown / BANDWIDTH
        });
        let read = mean(&reads);
        let per_sequence = (decode(256, 16) - decode(16, 16)) / 240.0;
        let attention_start = decode(1, 16);
        let split = mean(&[8, 16, 32, 64].map(|sequences| {
            let context = f64::from(sequences) * 2048.0;
            decode(sequences, 2048)
                - context * KV_BYTES / (read * BANDWIDTH)
                - attention_start
                - per_sequence * f64::from(sequences)
        }));
        let pair = (chunk(2048, 16384) - chunk(2048, 0)) / 16384.0 / 2048.0;
        let lead = mean(&[512, 1024, 2048].map(|tokens| {
            let own = f64::from(tokens);
            (chunk(tokens, 0) - attention_start) / (pair * own) - own / 2.0
        }));
        let chunk_latency = mean(&[16, 32, 64, 128].map(|n| (chunk(n, 16384) - chunk(n, 4096)) / 12288.0));
        let decode_latency = mean(
            &[256, 512, 1024, 2048]
                .map(|tokens| (self.attention[&(tokens, 0, 1, 8192)] - chunk(tokens, 0)) / 8192.0),
        );
        let mut mixed = Vec::new();
        for tokens in [512, 1024, 2048] {
            for cached in [0, 2048, 4096] {
                for context in [4096, 8192] {
                    let grown = self.attention[&(tokens, cached, 16, context)] - chunk(tokens, cached);
                    mixed.push(16.0 * f64::from(context) * QUERY_BYTES / grown / BANDWIDTH);
                }
            }
        }
        vec![
            ("weights", 1.0 / (slope * BANDWIDTH)),
            ("flops", flops),
            ("gemm_start", start),
            ("small_kernel", self.elementwise(1) / 4.0),
            ("elementwise", elementwise),
            ("kv_read", read),
            ("attention_start", attention_start),
            ("attention_per_sequence", per_sequence),
            ("attention_split", split),
            ("attention_flops", PAIR / (pair * FLOPS)),
            ("chunk_lead", lead),
            ("chunk_token_latency", chunk_latency),
            ("decode_token_latency", decode_latency),
            ("mixed_kv_read", mean(&mixed)),
            ("sampler_start", self.sequence("sampler", 1)),
        ]
    }

    /// Time of a pass over a layer's matrices as a multiple of bytes / bandwidth, starts taken off.
    pub(crate) fn gemm_multiple(&self, tokens: u32, start: f64) -> f64 {
        let parameters: f64 = MATRICES.iter().map(|(_, parameters)| parameters).sum();
        (self.matrices(tokens) - 4.0 * start) / (2.0 * parameters / BANDWIDTH)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Least squares: intercept and slope.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
        / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
    (y - slope * x, slope)
}
