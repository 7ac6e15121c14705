//! Each table's columns: how rows become an Arrow batch and how a batch becomes rows again.
//!
//! The journal and the Parquet file of a table have the same schema. A reader takes columns by name: those it
//! does not know are ignored, optional ones that are not there read as absent.

mod chunks;
mod column;
mod events;
mod requests;
mod samples;
mod series;
mod steps;

pub(crate) use column::Columns;
pub(crate) use series::NumberedSeries;

use crate::{ArchiveError, Table};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

/// Rows in memory that have a table on disk.
pub(crate) trait Rows {
    /// Which.
    const TABLE: Table;

    /// Name, type and nullability of the columns, in their order.
    const COLUMNS: &'static [(&'static str, DataType, bool)];

    /// Number of rows.
    fn rows(&self) -> usize;

    /// Some of the rows, as the columns of [`Self::COLUMNS`].
    fn encode(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError>;

    /// Appends the rows of a batch.
    fn decode(&mut self, columns: &Columns<'_>) -> Result<(), ArchiveError>;

    /// Makes room for this many more rows.
    fn reserve(&mut self, _rows: usize) {}
}

/// The Arrow schema of a table.
pub(crate) fn schema<R: Rows>() -> SchemaRef {
    let fields: Vec<_> = R::COLUMNS
        .iter()
        .map(|(name, data_type, nullable)| Field::new(*name, data_type.clone(), *nullable))
        .collect();
    Arc::new(Schema::new(fields))
}

/// A batch from columns in the order of [`Rows::COLUMNS`].
fn batch<R: Rows>(columns: Vec<arrow::array::ArrayRef>) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new(schema::<R>(), columns)
}

/// Boxes a column.
fn column(array: impl arrow::array::Array + 'static) -> arrow::array::ArrayRef {
    Arc::new(array)
}
