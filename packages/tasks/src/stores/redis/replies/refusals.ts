/** Temporary errors of a server that has changed nothing, and what an operator can do about each. */
const NOT_NOW: Readonly<Record<string, string>> = {
  READONLY: 'this server is a replica: check the address, or wait for the failover to end',
  NOREPLICAS: 'too few replicas follow the master: start them, or lower min-replicas-to-write',
  MASTERDOWN: 'the replica has lost its master: wait for the failover to end',
  LOADING: 'the server is loading its data: wait until it has started',
  CLUSTERDOWN: 'the Cluster is incomplete: check it with CLUSTER INFO',
  TRYAGAIN: 'the shard is being moved to another node: wait until that is done',
  ASK: 'the shard is being moved to another node: wait until that is done',
  BUSY: 'the server runs a long script of another client',
  OOM: 'the server is out of memory: raise maxmemory, or lower retentionMs so that ended tasks go sooner',
  MISCONF: 'the server cannot write to its disk: read its log, then mend or free the disk',
};

/** The server is no longer the master, or cut off from its replicas: the Sentinels, or DNS, may know another. */
const LEAVE = { alone: ['READONLY'], watched: ['READONLY', 'NOREPLICAS', 'MASTERDOWN'] };

/** Returns the first word of a server's error. */
export function parseErrorCode({ message }: Error): string {
  return message.slice(0, /\s|$/.exec(message)!.index);
}

/** Returns what to do about a temporary error; undefined for a final one. */
export function adviceOn(refusal: Error): string | undefined {
  const code = parseErrorCode(refusal);
  return Object.hasOwn(NOT_NOW, code) ? NOT_NOW[code] : undefined;
}

/** Returns whether a new connection may reach another server that would not refuse. */
export function shouldLeave(refusal: Error, isWatched: boolean): boolean {
  return LEAVE[isWatched ? 'watched' : 'alone'].includes(parseErrorCode(refusal));
}
