#!/usr/bin/env python3
"""Reads a run directory with DuckDB, pandas and Polars, and checks that they agree.

usage: read-run.py RUN

A library that is not installed is skipped, and said so. Exit code 1 when two disagree or a file can't be read.
"""
import sys


def with_duckdb(run):
    import duckdb

    ttft = duckdb.sql(
        f"SELECT quantile_cont((first_token_ns - sent_ns) / 1e6, 0.5) FROM '{run}/requests.parquet' "
        "WHERE failure IS NULL AND phase <> 'warmup'"
    ).fetchall()[0][0]
    chunks = duckdb.sql(f"SELECT count(*) FROM '{run}/chunks.parquet'").fetchall()[0][0]
    running = duckdb.sql(
        f"SELECT max(value) FROM '{run}/samples.parquet' JOIN '{run}/series.parquet' USING (series) "
        "WHERE name LIKE '%num_requests_running' OR name LIKE '%requests_processing'"
    ).fetchall()[0][0]
    for table in ("steps", "events"):
        duckdb.sql(f"SELECT * FROM '{run}/{table}.parquet'").fetchall()
    return ttft, chunks, running


def with_pandas(run):
    import pandas as pd

    requests = pd.read_parquet(f"{run}/requests.parquet")
    good = requests[requests.failure.isna() & (requests.phase != "warmup")]
    ttft = ((good.first_token_ns - good.sent_ns) / 1e6).median()
    samples = pd.read_parquet(f"{run}/samples.parquet").merge(pd.read_parquet(f"{run}/series.parquet"), on="series")
    running = samples[samples.name.str.match(".*(num_requests_running|requests_processing)$")].value.max()
    for table in ("steps", "events"):
        pd.read_parquet(f"{run}/{table}.parquet")
    return ttft, len(pd.read_parquet(f"{run}/chunks.parquet")), running


def with_polars(run):
    import polars as pl

    good = pl.read_parquet(f"{run}/requests.parquet").filter(
        pl.col("failure").is_null() & (pl.col("phase") != "warmup")
    )
    ttft = ((good["first_token_ns"] - good["sent_ns"]) / 1e6).median()
    samples = pl.read_parquet(f"{run}/samples.parquet").join(pl.read_parquet(f"{run}/series.parquet"), on="series")
    running = samples.filter(pl.col("name").str.contains("(num_requests_running|requests_processing)$"))["value"].max()
    for table in ("steps", "events"):
        pl.read_parquet(f"{run}/{table}.parquet")
    return ttft, pl.read_parquet(f"{run}/chunks.parquet").height, running


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    seen = {}
    for read in (with_duckdb, with_pandas, with_polars):
        try:
            seen[read.__name__] = tuple(None if value is None or value != value else value for value in read(sys.argv[1]))
        except ModuleNotFoundError as missing:
            print(f"{read.__name__}: skipped, {missing}")
            continue
        print(f"{read.__name__}: TTFT p50 {seen[read.__name__][0]} ms, {seen[read.__name__][1]} chunks, "
              f"peak running {seen[read.__name__][2]}")
    close = lambda a, b: a == b or (a is not None and b is not None and abs(a - b) <= 1e-9 * max(abs(a), abs(b)))
    results = list(seen.values())
    if any(not close(a, b) for other in results[1:] for a, b in zip(results[0], other)):
        sys.exit("they disagree")


main()
