/** Shared by the tests of `runchart run`: a directory to run in, and the replies of the main.go request. */
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from './cli.ts';
import type { ModelServer, Script } from './modelServer.ts';

export const QUESTION = 'Read main.go and tell me what it does';
export const KEY = 'sk-e2e-0123456789';

export const readsMainGo: Script = (reply) => {
  reply.text("I'll read", ' the file.');
  reply.call('call_1', 'Read', '{"file_path":"main.go"}');
  reply.finish('tool_calls');
};
export const explains: Script = (reply) => {
  reply.text('It counts', ' words.');
  reply.finish('stop');
};
/** Starts to answer and never ends. */
export const hangs: Script = async (reply) => {
  reply.text('Let me think');
  await reply.gone;
};

export interface Place {
  /** A copy of the sample. */
  cwd: string;
  env: Record<string, string>;
  /** The folder with the sessions of runs with `env`. */
  sessions: string;
  root: string;
}

/** Sessions get no titles from the model, unless `config` turns them on: its script then needs a reply for them. */
export async function place(server: ModelServer, config: object = { titles: false }): Promise<Place> {
  const root = await temporaryDirectory();
  const cwd = join(root, 'work');
  await cp(new URL('../../docs/examples/sample', import.meta.url), cwd, { recursive: true });
  await mkdir(join(root, 'config', 'runchart'), { recursive: true });
  await writeFile(join(root, 'config', 'runchart', 'config.json'), JSON.stringify(config));
  const env = {
    ...{ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: server.baseURL },
    ...{ XDG_STATE_HOME: join(root, 'state'), XDG_CONFIG_HOME: join(root, 'config') },
  };
  return { cwd, env, sessions: join(root, 'state', 'runchart'), root };
}

/** The values of JSON lines. */
export const entriesIn = (text: string): unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
