/** CPU time of this process in milliseconds: what work costs on a machine that others use too. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
