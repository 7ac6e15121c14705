//! The finished form of a table: one Parquet file.
//!
//! Snappy, because its decoder is small, fast and everywhere; times as differences (delta-packed), everything
//! that repeats (names, requests, series) by dictionary.

use crate::tables::{Columns, Rows, schema};
use crate::{ArchiveError, RunDir};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use precipice_record::manifest::SCHEMA;
use std::fs::File;
use std::path::Path;

/// Rows a row group: large enough to compress, small enough to be skipped and to be built in memory.
const ROW_GROUP: usize = 1 << 20;

/// Rows a batch when reading.
const BATCH: usize = 1 << 16;

/// Writes a table from batches of one schema. The file appears under its name only when it is whole.
pub(crate) fn write_batches<R: Rows>(
    dir: &RunDir,
    schema: SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArchiveError>>,
) -> Result<(), ArchiveError> {
    let path = dir.table(R::TABLE);
    let tmp = path.with_extension("parquet.tmp");
    let file = File::create(&tmp).map_err(ArchiveError::io(&tmp))?;
    let mut writer =
        ArrowWriter::try_new(&file, schema, Some(properties::<R>())).map_err(ArchiveError::parquet(&path))?;
    for batch in batches {
        writer.write(&batch?).map_err(ArchiveError::parquet(&path))?;
    }
    writer.close().map_err(ArchiveError::parquet(&path))?;
    file.sync_all().and_then(|()| std::fs::rename(&tmp, &path)).map_err(ArchiveError::io(&path))
}

/// Writes a table from rows in memory.
pub(crate) fn write_rows<R: Rows>(dir: &RunDir, rows: &R) -> Result<(), ArchiveError> {
    let path = dir.table(R::TABLE);
    let batches = (0..rows.rows()).step_by(BATCH).map(|start| {
        rows.encode(start..(start + BATCH).min(rows.rows())).map_err(ArchiveError::table(&path))
    });
    write_batches::<R>(dir, schema::<R>(), batches)
}

/// Reads a whole table. One that is not there has no rows.
pub(crate) fn read_rows<R: Rows + Default>(dir: &RunDir) -> Result<R, ArchiveError> {
    let path = dir.table(R::TABLE);
    let mut rows = R::default();
    if !path.exists() {
        return Ok(rows);
    }
    let file = File::open(&path).map_err(ArchiveError::io(&path))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(ArchiveError::parquet(&path))?;
    let total = reader.metadata().file_metadata().num_rows();
    rows.reserve(usize::try_from(total).unwrap_or(0));
    let batches = reader.with_batch_size(BATCH).build().map_err(ArchiveError::parquet(&path))?;
    for batch in batches {
        let batch = batch.map_err(ArchiveError::table(&path))?;
        decode_into(&mut rows, &batch, &path)?;
    }
    Ok(rows)
}

/// Appends a batch of the file at `path` to `rows`.
pub(crate) fn decode_into<R: Rows>(
    rows: &mut R,
    batch: &RecordBatch,
    path: &Path,
) -> Result<(), ArchiveError> {
    rows.decode(&Columns { batch, file: path })
}

fn properties<R: Rows>() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_created_by(concat!("precipice ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new("precipice.schema".to_owned(), SCHEMA.to_owned())]));
    for (name, data_type, _) in R::COLUMNS {
        if *data_type == DataType::UInt64 {
            let column = ColumnPath::from(*name);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}
