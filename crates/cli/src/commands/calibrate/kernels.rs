//! Tables of kernel times.

use super::options;
use crate::args::calibrate::CalibrateArgs;
use crate::outcome::usage;
use crate::resolve::model;
use anyhow::Result;
use flate2::read::MultiGzDecoder;
use precipice_decide::calibrate::{Calibration, Limits, Tables, from_kernels};
use std::io::Read;
use std::path::Path;

/// Limits of the server that the profile is for, where the flags say nothing: vLLM's defaults on GPUs below 70 GiB.
const DEFAULTS: (u32, u32) = (2048, 256);
/// Steps over more context than this are left out: tables go up to millions of tokens, where attention is all that counts, and
/// no GPU whose kernels are tabled in this way holds so many.
const POOL_TOKENS: u64 = 131_072;

/// Fits a profile to the three tables in `dir`.
pub(super) fn from_tables(args: &CalibrateArgs, dir: &Path) -> Result<Calibration> {
    let model = model::shape_of(&args.target.model)?.ok_or_else(|| {
        usage("--kernels: the tables do not say which model they are of: give its shape with --model-config NAME|config.json")
    })?;
    let (dense, attention, per_sequence) = (
        table(dir, "profile_dense.csv")?,
        table(dir, "profile_attention.csv")?,
        table(dir, "profile_per_sequence.csv")?,
    );
    let limits = Limits {
        max_num_batched_tokens: args.sweeps.max_num_batched_tokens.unwrap_or(DEFAULTS.0),
        max_num_seqs: args.sweeps.max_num_seqs.unwrap_or(DEFAULTS.1),
        max_model_len: u32::MAX,
        pool_tokens: Some(POOL_TOKENS),
        longest_prompt: None,
    };
    let tables = Tables { dense: &dense, attention: &attention, per_sequence: &per_sequence };
    let origin = dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.display().to_string());
    from_kernels(tables, &limits, &options(args, &model, None)?, &origin)
        .map_err(|error| usage(format!("--kernels {}: {error}", dir.display())))
}

/// A table, plain or gzip.
fn table(dir: &Path, name: &str) -> Result<String> {
    let found = [dir.join(name), dir.join(format!("{name}.gz"))].into_iter().find(|path| path.is_file());
    let path = found.ok_or_else(|| usage(format!("--kernels {}: it has no {name}", dir.display())))?;
    let broken = |error: std::io::Error| usage(format!("--kernels {}: {error}", path.display()));
    let bytes = std::fs::read(&path).map_err(broken)?;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).map_err(broken)?;
    } else {
        text = String::from_utf8(bytes)
            .map_err(|error| usage(format!("--kernels {}: {error}", path.display())))?;
    }
    Ok(text)
}
