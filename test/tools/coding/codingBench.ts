/** A real workspace on disk for the coding tools, and calls of tools: arguments first pass the schema. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { answerOf, definitionOf, type ToolDefinition } from '../../../src/tools/tool.ts';

export interface Bench {
  /** The working directory `ws`; its neighbour `ws-evil` contains a file `s`. */
  root: string;
  evil: string;
  write(name: string, content: string | Uint8Array): Promise<void>;
  link(name: string, target: string): Promise<void>;
  remove(): Promise<void>;
}

export interface Reply {
  status: string;
  code: string | undefined;
  text: string;
}

export const SECRET = 'the secret of the sibling';

export async function makeBench(): Promise<Bench> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'coding-')));
  const root = join(base, 'ws');
  const evil = join(base, 'ws-evil');
  await mkdir(root);
  await mkdir(evil);
  await writeFile(join(evil, 's'), `${SECRET}\n`);
  return {
    root,
    evil,
    async write(name, content) {
      // All at once: a thousand files take a tenth of the time of a thousand promises.
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), content);
    },
    link: (name, target) => symlink(target, join(root, name)),
    async remove() {
      await chmod(join(evil, 'closed'), 0o700).catch(() => undefined);
      await rm(base, { recursive: true, force: true });
    },
  };
}

export function toolNamed(name: string): ToolDefinition {
  const tool = codingTools({ sandbox: 'off' }).find((each) => each.name === name);
  const definition = tool && definitionOf(tool);
  if (definition === undefined) throw new Error(`no coding tool is named ${name}`);
  return definition;
}

/** Calls a tool as the executor does. Arguments that its schema refuses return the status `invalid`. */
export async function call(cwd: string, name: string, args: object, signal?: AbortSignal): Promise<Reply> {
  const { parameters, execute } = toolNamed(name);
  const checked = await parameters['~standard'].validate(args);
  if (checked.issues !== undefined) {
    const text = checked.issues.map(({ message }) => message).join('; ');
    return { status: 'invalid', code: undefined, text };
  }
  const answer = answerOf(
    await execute(checked.value, {
      callId: 'c1',
      conversationId: 'conversation',
      runId: 'run',
      cwd,
      signal: signal ?? new AbortController().signal,
      idempotencyKey: 'key',
      origin: { messageId: 'm' },
      state: {},
      progress: () => undefined,
      now: () => Date.now(),
      sleep: () => Promise.resolve(),
    }),
  );
  if (answer === undefined || answer.status === 'pending') throw new Error(`${name} gave no finished result`);
  const code = answer.status === 'error' ? answer.code : undefined;
  return { status: answer.status, code, text: String(answer.content) };
}
