/** A Restate server on loopback for tests, with free ports and a directory of its own. It can be killed and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The program; undefined where the package of this folder is not installed, or has none for this platform. */
export function serverBinary(): string | undefined {
  try {
    const require = createRequire(import.meta.url);
    const starter = require.resolve('@restatedev/restate-server/package.json');
    const platform = `@restatedev/restate-server-${process.platform}-${process.arch}`;
    const folder = dirname(createRequire(starter).resolve(`${platform}/package.json`));
    return join(folder, 'bin', 'restate-server');
  } catch {
    return undefined;
  }
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

export class RestateServer {
  readonly ingress: string;
  readonly admin: string;
  readonly #binary: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'runchart-restate-'));
  readonly #environment: Record<string, string>;
  #process: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();

  readonly #name: string;

  static async start(binary: string, environment: Record<string, string> = {}): Promise<RestateServer> {
    const server = new RestateServer(
      binary,
      [await freePort(), await freePort(), await freePort()],
      'one',
      environment,
    );
    await server.start();
    return server;
  }

  /** Starts nodes of one cluster. Each change is stored by two of them. */
  static async startCluster(binary: string, count: number): Promise<RestateServer[]> {
    const ports: number[][] = [];
    for (let index = 0; index < count; index += 1) ports.push([await freePort(), await freePort(), await freePort()]);
    const addresses = ports.map(([, , node]) => `http://127.0.0.1:${node}`);
    const shared = {
      RESTATE_CLUSTER_NAME: 'runchart',
      RESTATE_DEFAULT_REPLICATION: '2',
      RESTATE_METADATA_CLIENT__ADDRESSES: JSON.stringify(addresses),
    };
    const nodes = ports.map(
      (own, index) =>
        new RestateServer(binary, own, `node-${index + 1}`, { ...shared, RESTATE_AUTO_PROVISION: String(index === 0) }),
    );
    await Promise.all(nodes.map((node) => node.start()));
    return nodes;
  }

  constructor(
    binary: string,
    [ingress = 0, admin = 0, node = 0]: readonly number[],
    name = 'one',
    environment: Record<string, string> = {},
  ) {
    this.#binary = binary;
    this.#name = name;
    this.ingress = `http://127.0.0.1:${ingress}`;
    this.admin = `http://127.0.0.1:${admin}`;
    this.#environment = {
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
      RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_DEFAULT_NUM_PARTITIONS: '4',
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '512MB',
      RESTATE_LOG_FILTER: 'error',
      RESTATE_DEFAULT_RETRY_POLICY__INITIAL_INTERVAL: '100ms',
      RESTATE_DEFAULT_RETRY_POLICY__MAX_INTERVAL: '1s',
      ...environment,
    };
  }

  /** Resolves when it takes requests. It has its earlier data. */
  async start(): Promise<void> {
    const child = spawn(this.#binary, ['--no-logo', '--base-dir', this.#directory, '--node-name', this.#name], {
      env: { ...process.env, ...this.#environment },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    this.#process = child;
    this.#exited = new Promise((resolve) => child.once('exit', () => resolve()));
    await until('the server takes requests', async () => {
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
      const answers = await Promise.all([
        answersAt(`${this.admin}/health`),
        answersAt(`${this.ingress}/restate/health`),
      ]);
      return answers.every((answer) => answer);
    });
  }

  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL');
    await this.#exited;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const answersAt = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );

/** Waits until the condition is true, at most a minute. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, ms = 120_000): Promise<void> {
  const end = Date.now() + ms;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`it did not come that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
