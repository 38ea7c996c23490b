//! Running the server: parameters, defaults, locks, log, stopping.

pub mod audit_config;
pub mod auto_compact;
pub mod cluster_parameter;
pub mod configure_fail_point;
pub mod create_backup;
pub mod drop_connections;
pub mod feature_version;
pub mod fsync;
pub mod get_parameter;
pub mod log_rotate;
pub mod profile;
pub mod rotate_certificates;
pub mod rw_concern;
pub mod set_parameter;
pub mod shutdown;
pub mod test_version;
mod traffic_control;
pub mod write_block;

use crate::spec::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[
    &audit_config::GET,
    &audit_config::SET,
    &auto_compact::SPEC,
    &cluster_parameter::GET,
    &cluster_parameter::SET,
    &configure_fail_point::SPEC,
    &create_backup::SPEC,
    &drop_connections::SPEC,
    &feature_version::SPEC,
    &fsync::LOCK,
    &fsync::UNLOCK,
    &get_parameter::SPEC,
    &log_rotate::SPEC,
    &profile::SPEC,
    &rotate_certificates::SPEC,
    &rw_concern::GET,
    &rw_concern::SET,
    &set_parameter::SPEC,
    &shutdown::SPEC,
    &test_version::SPEC,
    &write_block::SPEC,
];
