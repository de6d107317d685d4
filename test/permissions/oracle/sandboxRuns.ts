/** Runs lines in the sandbox that the rules granted. */
import { execFile } from 'node:child_process';
import { sandboxFor } from '../../../src/tools/coding/sandbox.ts';
import type { Confinement } from '../../../src/tools/tool.ts';
import type { OraclePlace } from './oracleDirectory.ts';

const DRIVER = 'for line; do printf "\\0"; timeout -s KILL 10 bash -c -- "$line" </dev/null 2>&1; done';

/** The output of each line, all of them in one sandbox. */
export async function printed(
  place: OraclePlace,
  lines: readonly string[],
  confinement: Confinement,
): Promise<string[]> {
  const launcher = await sandboxFor('required', {})?.(place.ws, confinement);
  if (!launcher) throw new Error('there is no sandbox');
  const args = [...launcher.args, 'bash', '-c', DRIVER, 'driver', ...lines];
  const options = {
    cwd: place.ws,
    env: place.env(),
    timeout: 300_000,
    maxBuffer: 2 ** 28,
    encoding: 'latin1' as const,
  };
  const output = await new Promise<string>((done) => {
    execFile(launcher.program, args, options, (_, stdout) => done(stdout)).stdin?.end();
  });
  await launcher.release();
  return output.split('\0').slice(1);
}
