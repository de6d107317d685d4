/**
 * The public names. Invariant: a new or removed name changes this file. `vitest -u` writes it, and the commit also
 * contains a line of the changelog.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { entries, read, root } from '../docs/documents.ts';

interface Manifest {
  exports: Record<string, string | { types: string; default: string }>;
  bin: Record<string, string>;
  files: string[];
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
}
const manifest = JSON.parse(read('package.json')) as Manifest;

const namesOf = async (source: string): Promise<string[]> =>
  Object.keys((await import(join(root, source))) as object).sort();
const isThere = (source: string): boolean => existsSync(join(root, source));

describe('the manifest', () => {
  it('every entry is built from an existing source, and has the types of the same source', () => {
    expect([...entries.values()].filter((source) => !isThere(source))).toEqual([]);
    const targets = Object.values(manifest.exports).filter((target) => typeof target !== 'string');
    for (const { types, default: code } of targets) expect(types).toBe(code.replace(/\.js$/, '.d.ts'));
  });

  it('the program is built from an existing source and starts with a shebang', () => {
    const [built = ''] = Object.values(manifest.bin);
    expect(read(built.replace(/^dist\//, '').replace(/\.js$/, '.ts'))).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it('published files exist, apart from those that the build makes', () => {
    expect(manifest.files.filter((file) => file !== 'dist' && !isThere(file))).toEqual([]);
    expect(isThere('LICENSE') && isThere('README.md')).toBe(true);
  });
});

/** The optional packages that the types of an entry name, by entry. */
async function namedPackages(types: string): Promise<Record<string, string[]>> {
  const packages: Record<string, string[]> = {};
  for (const [entry, source] of entries) {
    const files = new Set([join(types, source.replace(/ts$/, 'd.ts'))]);
    const named = new Set<string>();
    for (const file of files) {
      for (const [, name = ''] of (await readFile(file, 'utf8')).matchAll(/(?:from|import\() ?'([^']+)'/g)) {
        if (name.startsWith('.')) files.add(join(dirname(file), name.replace(/\.[jt]s$/, '.d.ts')));
        else if (name in manifest.peerDependencies) named.add(name);
      }
    }
    if (named.size > 0) packages[entry] = [...named];
  }
  return packages;
}

describe('the types', () => {
  it('of an entry are complete without optional packages, apart from those of MCP servers', async () => {
    const types = await mkdtemp(join(tmpdir(), 'runchart-types-'));
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const options = ['-p', join(root, 'tsconfig.build.json'), '--outDir', types, '--noCheck', '--emitDeclarationOnly'];
    await promisify(execFile)(process.execPath, [tsc, ...options]);
    expect(await namedPackages(types)).toEqual({ 'runchart/mcp': ['@modelcontextprotocol/client'] });
    await rm(types, { recursive: true });
  });
});

describe('public names', () => {
  it('runchart', async () => {
    expect(await namesOf('src/index.ts')).toMatchInlineSnapshot(`
      [
        "AgentBusyError",
        "ConfigurationError",
        "CorruptLogError",
        "DecisionRefusedError",
        "InvalidDecisionError",
        "LimitError",
        "MediaTypeError",
        "ModelError",
        "RunError",
        "RunchartError",
        "SessionBusyError",
        "StoreConflictError",
        "copyConversations",
        "costOf",
        "createAgent",
        "defineTool",
        "deleteBefore",
        "forkConversation",
        "memoryStore",
        "pastOf",
        "presets",
        "subAgents",
        "thrownMessage",
        "thrownText",
        "toolResult",
      ]
    `);
  });

  it('runchart/machines', async () => {
    expect(await namesOf('machines/index.ts')).toMatchInlineSnapshot(`
      [
        "backoffMs",
        "chartCases",
        "compactionMachine",
        "conversationMachine",
        "createTranscript",
        "defaultLimits",
        "defaultPolicies",
        "modelCallMachine",
        "modelMessages",
        "nextState",
        "responseEventOf",
        "responseStateMachine",
        "resumeToolCallMachine",
        "runMachine",
        "surroundings",
        "toolCallMachine",
        "toolRoundMachine",
      ]
    `);
  });

  it('runchart/projector', async () => {
    expect(await namesOf('src/projector/index.ts')).toMatchInlineSnapshot(`
      [
        "createProjector",
        "project",
        "resolutionSteps",
        "withLiveText",
      ]
    `);
  });

  it('runchart/openai', async () => {
    expect(await namesOf('src/models/openai/index.ts')).toMatchInlineSnapshot(`
      [
        "openai",
        "openaiResponses",
      ]
    `);
  });

  it('runchart/anthropic', async () => {
    expect(await namesOf('src/models/anthropic/anthropic.ts')).toMatchInlineSnapshot(`
      [
        "anthropic",
      ]
    `);
  });

  it('runchart/ai-sdk', async () => {
    expect(await namesOf('src/models/aiSdk/aiSdk.ts')).toMatchInlineSnapshot(`
      [
        "aiSdkModel",
      ]
    `);
  });

  it('runchart/mcp', async () => {
    expect(await namesOf('src/mcp/mcpTools.ts')).toMatchInlineSnapshot(`
      [
        "mcpServer",
        "mcpTools",
      ]
    `);
  });

  it('runchart/otel', async () => {
    expect(await namesOf('src/otel/openTelemetry.ts')).toMatchInlineSnapshot(`
      [
        "openTelemetry",
      ]
    `);
  });

  it('runchart/restate', async () => {
    expect(await namesOf('src/restate/index.ts')).toMatchInlineSnapshot(`
      [
        "blobBucket",
        "blobDirectory",
        "blobTable",
        "notifyHub",
        "restateAgent",
        "serveAgent",
      ]
    `);
  });

  it('runchart/prices', async () => {
    expect(await namesOf('src/models/prices.ts')).toMatchInlineSnapshot(`
      [
        "knownModel",
      ]
    `);
  });

  it('runchart/node', async () => {
    expect(await namesOf('src/node.ts')).toMatchInlineSnapshot(`
      [
        "allowAlways",
        "codingTools",
        "configuredPlugins",
        "hooks",
        "jsonlStore",
        "loadConfiguration",
        "permissions",
        "sandboxStatus",
        "systemPrompt",
        "trustProject",
      ]
    `);
  });

  it('runchart/sqlite', async () => {
    expect(await namesOf('src/stores/sqlite/sqliteStore.ts')).toMatchInlineSnapshot(`
      [
        "sqliteStore",
      ]
    `);
  });

  it.runIf(isThere('src/testing/index.ts'))('runchart/testing', async () => {
    expect(await namesOf('src/testing/index.ts')).toMatchInlineSnapshot(`
      [
        "agentPaths",
        "coverPaths",
        "drawChart",
        "drive",
        "logStoreSuite",
        "modelSuite",
        "neverReached",
        "recordingJournal",
        "replayRecording",
        "replayUntil",
        "replayingJournal",
        "requestLoopSuite",
        "runScript",
        "scriptOf",
        "scriptedModel",
        "shrink",
        "simulate",
        "surroundings",
        "testOf",
        "transitionCoverage",
      ]
    `);
  });

  it('runchart/transports', async () => {
    expect(await namesOf('src/transports/index.ts')).toMatchInlineSnapshot(`
      [
        "agUiHandler",
        "createHandlers",
        "inProcessTransport",
        "nodeHandler",
        "route",
        "sessions",
        "stdioTransport",
        "toAgUi",
        "toUiMessages",
        "uiMessageHandler",
        "uiMessagesOf",
      ]
    `);
  });

  it('runchart/client', async () => {
    expect(await namesOf('src/client/index.ts')).toMatchInlineSnapshot(`
      [
        "connect",
      ]
    `);
  });

  it('runchart/react', async () => {
    expect(await namesOf('src/react/index.ts')).toMatchInlineSnapshot(`
      [
        "useAgent",
        "useConversation",
      ]
    `);
  });

  it('runchart/request-loop', async () => {
    expect(await namesOf('src/requestLoop/index.ts')).toMatchInlineSnapshot(`
      [
        "FileOperationError",
        "GlobalRequestTimeoutError",
        "ModelRetry",
        "ToolExecutionError",
        "UnregisteredCallError",
        "UserAbortError",
        "ValidationError",
        "cleanHistory",
        "createStateManager",
        "normalizeArgs",
        "prepareHistory",
        "processNode",
        "processRequest",
        "pruneToolOutputs",
      ]
    `);
  });

  it('runchart/browser', async () => {
    expect(await namesOf('src/browser.ts')).toMatchInlineSnapshot(`
      [
        "indexedDbStore",
        "startChannelInspector",
      ]
    `);
  });

  it('runchart/inspect', async () => {
    expect(await namesOf('src/inspect/index.ts')).toMatchInlineSnapshot(`
      [
        "inspectorHandler",
        "startInspector",
        "statelyInspector",
      ]
    `);
  });

  it('runchart/schema', async () => {
    expect(await namesOf('src/schema.ts')).toMatchInlineSnapshot(`
      [
        "logEntrySchema",
        "wireEventSchema",
      ]
    `);
  });
});
