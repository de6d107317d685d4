/** The library stays as it is installed: it has files of its own beside its modules. */
export default { serverExternalPackages: ['runchart'] };
