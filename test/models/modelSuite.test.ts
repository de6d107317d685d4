import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenAICompatible as createOfVersion4 } from 'ai-sdk-openai-compatible-v4';
import { createOpenAICompatible as createOfVersion2 } from 'openai-compatible-v2';
import { describe, test } from 'vitest';

import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { openaiResponses } from '../../src/models/openai/responses.ts';
import { modelSuite } from '../../src/testing/modelSuite/modelSuite.ts';
import { messagesWire, responsesWire } from './vendorWires.ts';
import { translated } from './wireTranslator.ts';

const runner = { describe, test };

describe('openai', () => {
  modelSuite(({ baseURL }) => openai('suite', { apiKey: 'key-of-the-suite', baseURL }), runner);
});

describe('openaiResponses, by the wire of the Responses API', () => {
  modelSuite(async ({ baseURL }) => {
    const server = await translated(responsesWire, baseURL);
    return openaiResponses('suite', { apiKey: 'key-of-the-suite', baseURL: `${server}/v1` });
  }, runner);
});

describe('anthropic, by the wire of the Messages API', () => {
  modelSuite(async ({ baseURL }) => {
    const server = await translated(messagesWire, baseURL);
    return anthropic('suite', { apiKey: 'key-of-the-suite', baseURL: server });
  }, runner);
});

describe('aiSdkModel with an OpenAI-compatible provider', () => {
  modelSuite(({ baseURL }) => {
    const provider = createOpenAICompatible({ name: 'suite', baseURL, apiKey: 'key-of-the-suite', includeUsage: true });
    return aiSdkModel(provider('suite'));
  }, runner);
});

describe('aiSdkModel with a provider of specification version 2', () => {
  modelSuite(({ baseURL }) => {
    const provider = createOfVersion2({ name: 'suite', baseURL, apiKey: 'key-of-the-suite', includeUsage: true });
    return aiSdkModel(provider('suite'));
  }, runner);
});

describe('aiSdkModel with a provider of specification version 4', () => {
  modelSuite(({ baseURL }) => {
    const provider = createOfVersion4({ name: 'suite', baseURL, apiKey: 'key-of-the-suite', includeUsage: true });
    return aiSdkModel(provider('suite'));
  }, runner);
});
