/** Starts and ends the process of the demo's model. Rule: it never outlives the one that started it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RunchartError } from '../errors.ts';

const START_MS = 10_000;

interface DemoServer {
  readonly baseURL: string;
  readonly pid: number;
  /** Resolves when the process is gone. */
  close(): Promise<void>;
}

/** Rejects where the process does not tell its port in time. */
export async function startDemoServer(): Promise<DemoServer> {
  const file = fileURLToPath(new URL('./scriptedServer.js', import.meta.url));
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] });
  const gone = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
  const close = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  try {
    const lines = createInterface({ input: child.stdout });
    const silent = AbortSignal.timeout(START_MS);
    const [line] = (await Promise.race([once(lines, 'line', { signal: silent }), gone.then(() => [''])])) as [string];
    lines.close();
    const port = Number(line);
    if (!Number.isInteger(port) || port <= 0) throw new Error(`expected a port number, got ${JSON.stringify(line)}`);
    return { baseURL: `http://127.0.0.1:${port}/v1`, pid: child.pid ?? 0, close };
  } catch (cause) {
    await close();
    throw new RunchartError('demo', `the demo's model server did not start: ${String(cause)}`, { cause });
  }
}
