//! Writes and reads a run of ten million chunks, and prints what it took.
//!
//! `cargo run --release -p precipice-archive --example ten_million [ROWS]`

#![allow(clippy::print_stdout)]

use precipice_archive::{RunWriter, Table, read_tables};
use precipice_record::{ChunkRow, Manifest, Ns, RequestRow, Sink};
use std::error::Error;
use std::time::Instant;

/// Streams that run beside each other.
const STREAMS: u32 = 1024;

/// Tokens a stream.
const TOKENS: u32 = 512;

/// Up to a millisecond, so that the times do not compress to nothing (the finaliser of SplitMix64).
fn noise(row: u64) -> u64 {
    let mixed = (row ^ (row >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed >> 44
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows: u32 = std::env::args().nth(1).map_or(Ok(10_000_000), |rows| rows.parse())?;
    let dir = std::env::temp_dir().join(format!("precipice-ten-million-{}", std::process::id()));

    let begun = Instant::now();
    let mut writer = RunWriter::create(&dir, &Manifest::default())?;
    for row in 0..rows {
        let stream = row % STREAMS;
        let token = row / STREAMS;
        let noise = noise(u64::from(row));
        writer.chunk(ChunkRow {
            request: stream + token / TOKENS * STREAMS,
            attempt: 0,
            time: Ns(u64::from(token) * 20_000_000 + noise),
            tokens: 1,
            events_in_read: 1,
        });
    }
    for request in 0..rows / TOKENS {
        writer.request(RequestRow { request, ..RequestRow::default() });
    }
    let pushed = begun.elapsed();
    writer.flush();
    let flushed = begun.elapsed();
    let run = writer.finish(&Manifest::default())?;
    let finished = begun.elapsed();
    let bytes = std::fs::metadata(run.table(Table::Chunks))?.len();
    println!(
        "{rows} rows: pushed in {pushed:.2?}, on disk after {flushed:.2?}, finished after {finished:.2?}"
    );
    println!(
        "chunks.parquet: {:.1} MB, {:.2} bytes a row",
        bytes as f64 / 1e6,
        bytes as f64 / f64::from(rows)
    );

    let begun = Instant::now();
    let read = read_tables(&dir, &Table::ALL)?;
    println!(
        "read {} chunks and {} requests in {:.2?}",
        read.chunks.len(),
        read.requests.len(),
        begun.elapsed()
    );
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
