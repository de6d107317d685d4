/**
 * The parts ("rooms") of the code, with the rooms and packages that each may import. `test/tidy.test.ts` checks these rules. A new
 * folder
 * or a new dependency needs a line here.
 */
export const NODE_ONLY =
  /^src\/(node\.ts|cli\/|stores\/(jsonl|sqlite)\/|tools\/coding\/|permissions\/|hooks\/|inspect\/|restate\/|mcp\/stdio\/|testing\/)/;
/** The packages that a file may import, by the first rule that matches the file. */
export const PACKAGES: [RegExp, readonly RegExp[]][] = [
  [/^machines\//, [/^xstate$/]],
  [/^src\/models\/openai\/(openai|vendorClient)\./, [/^openai(\/|$)/]],
  [/^src\/models\/anthropic\/anthropicClient\./, [/^@anthropic-ai\/sdk$/]],
  [/^src\/models\/aiSdk\//, [/^@ai-sdk\/provider$/]],
  [/^src\/mcp\/(?!stdio)/, [/^@modelcontextprotocol\/(client(\/stdio)?|server)$/, /^zod$/, /^@standard-schema\/spec$/]],
  [/^src\/otel\//, [/^@opentelemetry\/api$/]],
  [/^src\/models\/prices/, [/^@pydantic\/genai-prices$/]],
  [/^src\/models\/wire\/eventStream/, [/^eventsource-parser$/]],
  [/^src\/conversation\/partialOutput/, [/^partial-json$/]],
  [/^src\/schema\.ts$/, [/^zod$/]],
  [/^src\/tools\/coding\//, [/^node:/, /^zod$/, /^tinyglobby$/, /^diff$/]],
  [/^src\/permissions\//, [/^node:/, /^unbash$/, /^ignore$/]],
  [/^src\/(node\.ts|stores\/(jsonl|sqlite)\/|hooks\/|session\/|mcp\/stdio\/)/, [/^node:/]],
  [/^src\/cli\/acp\//, [/^node:/, /^@agentclientprotocol\/sdk$/]],
  [/^src\/cli\/serveCommand/, [/^node:/, /^hono(\/cors)?$/]],
  [/^src\/transports\/nodeHandler/, [/^node:http$/, /^node:net$/, /^@hono\/node-server(\/utils\/response)?$/]],
  [/^src\/cli\/definitions\/frontMatter/, [/^yaml$/]],
  [/^src\/cli\/(interactive\/textRows|formatted\/)/, [/^(string-width|diff|marked)$/, /^@speed-highlight\/core\//]],
  [/^src\/cli\//, [/^node:/, /^commander$/, /^picocolors$/, /^zod$/, /^xstate$/]],
  [/^src\/restate\//, [/^(@restatedev\/restate-sdk|aws4fetch)$/, /^node:(http2|net)$/]],
  [/^src\/react\//, [/^react$/]],
  [/^src\/inspect\//, [/^node:/, /^ws$/, /^xstate$/, /^rxjs$/]],
  [/^src\/testing\//, [/^@xstate\/graph$/, /^xstate$/, /^node:/]],
  [/^src\//, [/^xstate$/, /^rxjs$/, /^@standard-schema\/spec$/]],
];

/** The parts of a view have a separate entry point, so views import no chart and no xstate. */
export const DOORS =
  /^machines\/(index|internal|verbs|vocabulary|log\/earlierMessages|log\/entryKinds|tools\/toolGroups)\.ts$/;

/** The leaves of `src/`: every room above may import them. */
export const LEAVES = ['errors', 'validation', 'json', 'timeLimit', 'live', 'onDemand', 'printable'].map(
  (leaf) => `src/${leaf}.ts`,
);
/** The folders below charts and folds. */
const NOUNS = 'vocabulary policyRows policies calls ports verbs xstateVerbs counters fingerprint'
  .split(' ')
  .map((noun) => `machines/${noun}.ts`);
const DOOR = 'machines/internal.ts';
/** The names of the charts that most of the library may use. */
const FACE = [DOOR, 'machines/verbs.ts', 'machines/vocabulary.ts'];
const ADAPTERS = ['src/stores', 'src/content', 'src/log', 'src/models', 'src/tools'];
const RULES = [...ADAPTERS, 'src/plugins', 'src/agentPolicies.ts'];
const LOOP = [...RULES, 'src/runtime/interpreter', 'src/runtime'];
const SERVED = ['src/projector', 'src/options.ts', 'src/conversation', 'src/remote', 'src/agent.ts'];
const SERVING = [...FACE, ...LEAVES, ...LOOP, ...SERVED];

/** Each room with the rooms that it may import, from the bottom to the top: a room names only rooms that come before it. */
export const HOUSE: readonly (readonly [room: string, imports: readonly string[]])[] = [
  ...NOUNS.map((noun, index) => [noun, NOUNS.slice(0, index)] as const),
  ['machines/charts', NOUNS],
  ['machines/cases', ['machines/charts', ...NOUNS]],
  ['machines/index.ts', ['machines/charts', 'machines/cases', ...NOUNS]],
  [DOOR, ['machines/index.ts', 'machines/charts', ...NOUNS]],
  ...LEAVES.map((leaf, index) => [leaf, [...FACE, ...LEAVES.slice(0, index)]] as const),
  ['src/projector', ['machines/vocabulary.ts', 'machines/charts', 'src/live.ts']],
  ['src/words', ['machines/vocabulary.ts', 'src/printable.ts']],
  ['src/diagrams', []],
  ...RULES.map((room, index) => [room, [...FACE, ...LEAVES, ...RULES.slice(0, index)]] as const),
  ['src/scripts', [...FACE, ...LEAVES, 'src/log']],
  ['src/stores/jsonl', [...FACE, ...LEAVES, 'src/stores']],
  ['src/stores/sqlite', [...FACE, ...LEAVES, 'src/stores', 'src/stores/jsonl']],
  ['src/stores/postgres', [...FACE, ...LEAVES, 'src/stores']],
  ['src/models/wire', [...FACE, ...LEAVES, 'src/content', 'src/log', 'src/models']],
  ['src/models/openai', [...FACE, ...LEAVES, 'src/content', 'src/models', 'src/models/wire']],
  ['src/models/anthropic', [...FACE, ...LEAVES, 'src/content', 'src/models', 'src/models/wire']],
  ['src/models/aiSdk', [...FACE, ...LEAVES, 'src/content', 'src/models', 'src/models/wire']],
  ['src/tools/coding', [...FACE, ...LEAVES, 'src/content', 'src/tools']],
  ['src/permissions', [...FACE, ...LEAVES, 'src/tools', 'src/plugins', 'src/tools/coding']],
  ['src/otel', [...FACE, ...LEAVES, 'src/models', 'src/plugins']],
  ['src/hooks', [...FACE, ...LEAVES, ...RULES, 'src/tools/coding']],
  [
    'src/session',
    [...FACE, ...LEAVES, 'src/plugins', 'src/agentPolicies.ts', 'src/tools/coding', 'src/permissions', 'src/hooks'],
  ],
  ['src/runtime/interpreter', [...FACE, 'src/errors.ts', 'src/timeLimit.ts']],
  ['src/runtime', [...FACE, ...LEAVES, ...RULES, 'src/runtime/interpreter']],
  ['src/options.ts', [...FACE, ...LEAVES, ...LOOP]],
  ['src/journals', [...FACE, ...LEAVES, ...LOOP]],
  ['src/subAgents', [...FACE, ...LEAVES, ...LOOP]],
  ['src/conversation', [...FACE, ...LEAVES, ...LOOP, 'src/projector', 'src/options.ts', 'src/subAgents']],
  ['src/remote', [...FACE, ...LEAVES, ...LOOP, 'src/projector', 'src/conversation']],
  ['src/agent.ts', [...FACE, ...LEAVES, ...LOOP, 'src/options.ts', 'src/conversation']],
  ['src/transports', SERVING],
  ['src/mcp/stdio', ['src/tools/coding']],
  [
    'src/mcp',
    [...FACE, ...LEAVES, 'src/content', 'src/log', 'src/tools', 'src/conversation', 'src/agent.ts', 'src/mcp/stdio'],
  ],
  ['src/client', [...SERVING, 'src/models/wire', 'src/transports']],
  ['src/requestLoop', [...FACE, ...LEAVES, ...LOOP, 'src/conversation', 'src/agent.ts']],
  ['src/react', ['machines/vocabulary.ts', 'src/live.ts', 'src/projector', 'src/conversation', 'src/client']],
  ['src/inspect', [...SERVING, 'src/transports']],
  ['src/restate', [...SERVING, 'src/transports', 'src/stores/jsonl', 'src/stores/postgres']],
  [
    'src/index.ts',
    [
      'machines/index.ts',
      ...LEAVES,
      ...LOOP,
      'src/projector',
      'src/options.ts',
      'src/subAgents',
      'src/conversation',
      'src/agent.ts',
    ],
  ],
  ['src/node.ts', ['src/stores/jsonl', 'src/tools/coding', 'src/permissions', 'src/hooks', 'src/session']],
  ['src/browser.ts', ['src/stores', 'src/inspect']],
  ['src/schema.ts', ['machines/vocabulary.ts', 'machines/charts', 'src/projector']],
  [
    'src/testing',
    [
      ...FACE,
      ...LEAVES,
      ...LOOP,
      'src/diagrams',
      'src/scripts',
      'src/projector',
      'src/options.ts',
      'src/journals',
      'src/subAgents',
      'src/conversation',
      'src/agent.ts',
      'src/requestLoop',
    ],
  ],
  [
    'src/testing/agentPaths',
    [
      ...FACE,
      ...LEAVES,
      ...LOOP,
      'src/diagrams',
      'src/scripts',
      'src/projector',
      'src/options.ts',
      'src/conversation',
      'src/agent.ts',
      'src/testing',
    ],
  ],
  [
    'src/testing/index.ts',
    [DOOR, 'src/diagrams', 'src/scripts', 'src/journals', 'src/testing', 'src/testing/agentPaths'],
  ],
  [
    'src/cli',
    [
      ...FACE,
      ...LEAVES,
      ...LOOP,
      'src/projector',
      'src/words',
      'src/diagrams',
      'src/scripts',
      'src/stores/jsonl',
      'src/stores/sqlite',
      'src/models/openai',
      'src/models/anthropic',
      'src/models/aiSdk',
      'src/tools/coding',
      'src/permissions',
      'src/hooks',
      'src/session',
      'src/conversation',
      'src/agent.ts',
      'src/mcp',
      'src/index.ts',
      'src/transports',
      'src/inspect',
    ],
  ],
];
