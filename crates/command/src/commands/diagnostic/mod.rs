//! Questions about the process, its machine and its connections.

pub mod build_info;
pub mod conn_pool_stats;
pub mod connection_status;
pub mod current_op;
pub mod features;
pub mod get_cmd_line_opts;
pub mod get_log;
pub mod host_info;
pub mod kill_op;
pub mod list_commands;
pub mod lock_info;
pub mod log_application_message;
pub mod server_status;
pub mod top;
pub mod whats_my_uri;

use crate::spec::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[
    &build_info::SPEC,
    &conn_pool_stats::SPEC,
    &connection_status::SPEC,
    &current_op::SPEC,
    &features::SPEC,
    &get_cmd_line_opts::SPEC,
    &get_log::SPEC,
    &host_info::SPEC,
    &kill_op::SPEC,
    &list_commands::SPEC,
    &lock_info::SPEC,
    &log_application_message::SPEC,
    &server_status::SPEC,
    &top::SPEC,
    &whats_my_uri::SPEC,
];
