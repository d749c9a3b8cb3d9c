//! Whole days of the closed loop in fake time.

mod crowds;
mod league;
