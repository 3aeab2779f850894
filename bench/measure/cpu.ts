/** CPU time of this process in milliseconds, which does not depend on other load of the machine. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
