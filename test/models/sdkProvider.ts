/** A provider of the AI SDK for tests. Its parts are plain objects, and it records its requests. */

export type Part = { type: string; [field: string]: unknown };
const V3_USAGE = {
  inputTokens: { total: 20, noCache: 10, cacheRead: 7, cacheWrite: 3 },
  outputTokens: { total: 9, text: 5, reasoning: 4 },
};
export const end = (unified = 'stop', raw = unified): Part => ({
  type: 'finish',
  finishReason: { unified, raw },
  usage: V3_USAGE,
});
export const textParts = (text: string, id = '1'): Part[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta: text },
  { type: 'text-end', id },
];
export const streamOf = (parts: readonly Part[], close = true): ReadableStream =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      if (close) controller.close();
    },
  });

interface Asked {
  prompt: { role: string; content: { type: string; [field: string]: unknown }[] }[];
  [option: string]: unknown;
}

/** Returns a provider's model that gives one list of parts per call and records its requests. */
export function provider(replies: readonly (readonly Part[])[], fields: object = {}) {
  const asked: Asked[] = [];
  const model = {
    specificationVersion: 'v3' as const,
    provider: 'acme.chat',
    modelId: 'm-1',
    supportedUrls: {},
    doStream: async (options: Asked) => {
      asked.push(options);
      return { stream: streamOf(replies[asked.length - 1] ?? [end()]) };
    },
    ...fields,
  };
  return { model, asked };
}
