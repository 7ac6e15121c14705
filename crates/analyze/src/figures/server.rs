//! The server's gauges over time.

use super::thin::thin;
use super::{Line, Timeline};
use crate::server::ServerPart;
use crate::server::grid::Grid;
use crate::window::Window;

/// Fills the server's lines.
pub(crate) fn draw(timeline: &mut Timeline, server: &ServerPart, window: Window, points: usize) {
    let grid = &server.grid;
    let line = |values: &[Option<f64>]| {
        if values.iter().all(Option::is_none) {
            Line::default()
        } else {
            thin(gauge(grid, values, window), points)
        }
    };
    timeline.running = line(&grid.running);
    timeline.waiting = line(&grid.waiting);
    timeline.kv_usage = line(&grid.kv_usage);
    timeline.preemptions = thin(staircase(server, window), points);
    timeline.holes_s = (1..grid.time.len())
        .filter(|&index| grid.hole_before(index))
        .map(|index| (window.at(grid.time[index - 1]), window.at(grid.time[index])))
        .collect();
}

/// The line breaks where a hole lies between two scrapes.
fn gauge(grid: &Grid, values: &[Option<f64>], window: Window) -> Line {
    let mut line = Line::default();
    for (index, &value) in values.iter().enumerate() {
        let at = window.at(grid.time[index]);
        if grid.hole_before(index) {
            line.push(f64::midpoint(window.at(grid.time[index - 1]), at), None);
        }
        line.push(at, value);
    }
    line
}

/// Preemptions so far, two points a step; from the start to the end of what is known.
fn staircase(server: &ServerPart, window: Window) -> Line {
    let mut line = Line::default();
    if server.findings.preemptions.count.is_none() {
        return line;
    }
    let mut so_far = 0_u32;
    line.push(0.0, Some(0.0));
    for event in &server.findings.preemptions.events {
        line.push(event.t_s, Some(f64::from(so_far)));
        so_far += event.n;
        line.push(event.t_s, Some(f64::from(so_far)));
    }
    line.push(window.seconds(), Some(f64::from(so_far)));
    line
}
