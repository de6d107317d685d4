/** The names of providers in traces, by the GenAI conventions of OpenTelemetry. */
import { expect, it } from 'vitest';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { openaiResponses } from '../../src/models/openai/responses.ts';

const sdkModel = (provider: string) => ({
  ...{ specificationVersion: 'v4' as const, provider, modelId: 'm', supportedUrls: {} },
  doStream: async () => ({ stream: new ReadableStream() }),
});

it.each([
  ['openai.responses', 'openai'],
  ['anthropic.messages', 'anthropic'],
  ['google.generative-ai', 'gcp.gemini'],
  ['google.vertex.chat', 'gcp.vertex_ai'],
  ['amazon-bedrock', 'aws.bedrock'],
  ['azure.responses', 'azure.ai.openai'],
  ['mistral.chat', 'mistral_ai'],
  ['xai.chat', 'x_ai'],
  ['groq.chat', 'groq'],
])('a provider of the AI SDK named %s is %s', (provider, name) => {
  expect(aiSdkModel(sdkModel(provider)).provider).toBe(name);
});

it('models with the API of a vendor have its name', () => {
  const options = { apiKey: 'k' };
  const models = [openai('m', options), openaiResponses('m', options), anthropic('m', options)];
  expect(models.map(({ provider }) => provider)).toEqual(['openai', 'openai', 'anthropic']);
});
