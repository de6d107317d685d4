/**
 * A PostgreSQL server of Debian's package, in a temporary directory and without a port. Invariant: it runs as an unprivileged user,
 * and ends with the test file. Without the package there is none, and its tests are skipped.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Pool } from 'pg';

const VERSIONS = '/usr/lib/postgresql';
const newest = existsSync(VERSIONS) ? readdirSync(VERSIONS).sort((a, b) => Number(b) - Number(a))[0] : undefined;
const programs = newest === undefined ? undefined : join(VERSIONS, newest, 'bin');
export const hasPostgres = programs !== undefined && existsSync(join(programs, 'postgres'));

export interface PostgresServer {
  /** The directory of its socket: the host of a connection. */
  host: string;
  pool(options?: { max?: number }): Pool;
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const [, , uid, gid] = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody') ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

export async function startPostgres(): Promise<PostgresServer> {
  if (programs === undefined) throw new Error('PostgreSQL is not installed');
  const host = await mkdtemp(join(tmpdir(), 'runchart-postgres-'));
  const user = unprivileged();
  await chmod(host, 0o700);
  if (user) await chown(host, user.uid, user.gid);
  const data = join(host, 'data');
  const environment = { PATH: process.env.PATH ?? '', LC_ALL: 'C', HOME: host };
  const spawned = { cwd: host, env: environment, ...user };
  const setUp = ['-D', data, '-U', 'runchart', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  await promisify(execFile)(join(programs, 'initdb'), setUp, spawned);
  const settings = {
    listen_addresses: '',
    unix_socket_directories: host,
    max_connections: '60',
    log_min_messages: 'fatal',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(join(programs, 'postgres'), ['-D', data, ...args], { ...spawned, stdio: 'ignore' });
  const ended = once(server, 'exit');
  const pools: Pool[] = [];
  const pool = ({ max = 10 } = {}): Pool => {
    const made = new Pool({ host, user: 'runchart', database: 'postgres', max });
    made.on('error', () => {});
    pools.push(made);
    return made;
  };
  await answers(pool({ max: 1 }));
  return {
    host,
    pool,
    async stop() {
      await Promise.all(pools.map((each) => each.end().catch(() => {})));
      server.kill('SIGQUIT');
      await ended;
      await rm(host, { recursive: true, force: true });
    },
  };
}

async function answers(pool: Pool): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return void (await pool.query('select 1'));
    } catch (error) {
      if (attempt === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
