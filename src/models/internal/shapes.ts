/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const aiSdkChatModelLayer =
  "providerTools?:<o>;headers?:<s~effect/Redacted~>;timeout?:d;contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];maxOutputTokens?:n;temperature?:n;topP?:n;topK?:n;presencePenalty?:n;frequencyPenalty?:n;stopSequences?:[s];seed?:n;thinking?:'high''low''max''medium''off''xhigh'{budget:n};providerOptions?:<o>"

export const anthropicChatModelLayer =
  "effort?:'high''low''max''medium''xhigh';cache?:'off'{ttl:'1h''5m'};parallelToolCalls?:b;strictTools?:b;model:s;apiKey?:~effect/Redacted~;vertex?:{project:s;location?:s;accessToken:~effect/Effect~};uploads?:o;serviceTier?:'auto''standard_only';contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];baseURL?:s;headers?:<s~effect/Redacted~>;betas?:[s];fetch?:f;timeout?:d;maxTokens?:n;temperature?:n;topP?:n;topK?:n;stopSequences?:[s];thinking?:'adaptive''high''low''max''medium''off''xhigh'{budget:n;interleaved?:b};showThinking?:b;serverTools?:a;metadata?:{userId:s};parameters?:o"

export const anthropicChatModelLayerBatch =
  "contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];baseURL?:s;headers?:<s~effect/Redacted~>;betas?:[s];fetch?:f;timeout?:d;maxTokens?:n;temperature?:n;topP?:n;topK?:n;stopSequences?:[s];thinking?:'adaptive''high''low''max''medium''off''xhigh'{budget:n;interleaved?:b};showThinking?:b;effort?:'high''low''max''medium''xhigh';cache?:'off'{ttl:'1h''5m'};parallelToolCalls?:b;strictTools?:b;serverTools?:a;metadata?:{userId:s};parameters?:o;window?:d;limit?:n;interval?:d;model:s;apiKey?:~effect/Redacted~;uploads?:o"

export const bedrockChatModelLayer =
  "maxTokens?:n;temperature?:n;topP?:n;topK?:n;model:s;region?:s;bearerToken?:~effect/Redacted~;credentials?:{accessKeyId:s;secretAccessKey:~effect/Redacted~;sessionToken?:~effect/Redacted~};contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];baseURL?:s;headers?:<s~effect/Redacted~>;betas?:[s];fetch?:f;timeout?:d;stopSequences?:[s];thinking?:'adaptive''high''low''max''medium''off''xhigh'{budget:n;interleaved?:b};showThinking?:b;effort?:'high''low''max''medium''xhigh';cache?:'off'{ttl:'1h''5m'};parallelToolCalls?:b;strictTools?:b;serverTools?:a;metadata?:{userId:s};parameters?:o"

export const bedrockConverseChatModelLayer =
  "timeout?:d;model:s;thinking?:'high''low''max''medium''off''xhigh'{budget:n};temperature?:n;topP?:n;maxOutputTokens?:n;stop?:[s];cache?:'off'{ttl:'1h''5m'};serverTools?:a;parameters?:o;contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];region?:s;bearerToken?:~effect/Redacted~;credentials?:{accessKeyId:s;secretAccessKey:~effect/Redacted~;sessionToken?:~effect/Redacted~};baseURL?:s;headers?:<s~effect/Redacted~>;fetch?:f"

export const chatModelsResolve =
  "providers?:a;profiles?:a;contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];thinking?:'high''low''max''medium''off''xhigh'{budget:n};baseURL?:s;apiKey?:~effect/Redacted~"

export const decisionModelsLayerChatModel = "logprobs?:o;certainty?:n"

export const decisionModelsLayerOpenAi =
  "model:s;apiKey?:~effect/Redacted~;headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;baseURL?:s"

export const decisionModelsLayerSystemOne =
  "model:s;apiKey?:~effect/Redacted~;headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;baseURL:s"

export const effectAiChatModelLayer =
  "modelId?:s;provider?:s;supportsVision?:b;contextWindowTokens?:n;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};hostedTools?:[~effect/ai/Tool~]"

export const effectAiToolkitFromToolkit = "approve?:f"

export const geminiChatModelLayer =
  "model:s;apiKey?:~effect/Redacted~;thinking?:'high''low''max''medium''off''xhigh'{budget:n};temperature?:n;topP?:n;topK?:n;seed?:n;maxOutputTokens?:n;stop?:[s];streamArguments?:b;uploads?:o;serverTools?:a;parameters?:o;contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];baseURL?:s;vertex?:{project:s;location?:s;accessToken:~effect/Effect~};headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d"

export const geminiEmbeddingModelLayer =
  "batchSize?:n;headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;vertex?:{project:s;location?:s;accessToken:~effect/Effect~};taskType?:'CLASSIFICATION''CLUSTERING''CODE_RETRIEVAL_QUERY''FACT_VERIFICATION''QUESTION_ANSWERING''RETRIEVAL_DOCUMENT''RETRIEVAL_QUERY''SEMANTIC_SIMILARITY';model:s;baseURL?:s;apiKey?:~effect/Redacted~;dimensions?:n"

export const llamaChatModelLayer =
  "contextSize?:n;sequences?:n;idle?:d;cacheDirectory?:s;codec?:'auto''gemma''hermes''lfm2''qwen-xml''wrapper';structuredOutput?:'native''tool';model:s;directory?:s;gpu?:'auto''cuda''metal''vulkan'b;threads?:n;onProgress?:f;temperature?:n;topK?:n;topP?:n;minP?:n;seed?:n;repeatPenalty?:n;maxTokens?:n;thinking?:'high''low''max''medium''off''xhigh'{budget:n}"

export const llamaEmbeddingModelLayer =
  "gpu?:'auto''cuda''metal''vulkan'b;contextSize?:n;model:s;directory?:s;threads?:n;onProgress?:f"

export const ollamaChatModelLayer =
  "model:s;baseURL?:s;apiKey?:~effect/Redacted~;headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;thinking?:'high''low''max''medium''off''xhigh'{budget:n};keepAlive?:d;temperature?:n;topP?:n;topK?:n;seed?:n;maxOutputTokens?:n;stop?:[s];parameters?:o;contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch']"

export const ollamaEmbeddingModelLayer =
  "batchSize?:n;headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;contextWindowTokens?:n;truncate?:b;keepAlive?:d;model:s;baseURL?:s;apiKey?:~effect/Redacted~;dimensions?:n"

export const openAiChatModelLayer =
  "organization?:s;project?:s;model:s;reasoning?:{effort?:'high''low''max''medium''minimal''none''xhigh';summary?:'auto''concise''detailed'};thinking?:'high''low''max''medium''off''xhigh'{budget:n};store?:b;background?:b;previousResponse?:b;webSocket?:b;uploads?:o;serverTools?:a;strictTools?:b;parameters?:o;contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];temperature?:n;topP?:n;maxOutputTokens?:n;verbosity?:'high''low''medium';parallelToolCalls?:b;serviceTier?:'auto''default''fast''flex''priority''scale';promptCacheKey?:s;promptCacheRetention?:'24h''in_memory';safetyIdentifier?:s;user?:s;metadata?:<s>;apiKey?:~effect/Redacted~;baseURL?:s;azure?:{endpoint:s;apiVersion?:s;deployment?:s;accessToken?:~effect/Effect~};headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d"

export const openAiChatModelLayerBatch =
  "contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];window?:d;limit?:n;interval?:d;temperature?:n;topP?:n;maxOutputTokens?:n;verbosity?:'high''low''medium';parallelToolCalls?:b;promptCacheKey?:s;promptCacheRetention?:'24h''in_memory';safetyIdentifier?:s;user?:s;metadata?:<s>;apiKey?:~effect/Redacted~;baseURL?:s;azure?:{endpoint:s;apiVersion?:s;deployment?:s;accessToken?:~effect/Effect~};headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;organization?:s;project?:s;model:s;reasoning?:{effort?:'high''low''max''medium''minimal''none''xhigh';summary?:'auto''concise''detailed'};thinking?:'high''low''max''medium''off''xhigh'{budget:n};store?:b;uploads?:o;serverTools?:a;strictTools?:b;parameters?:o"

export const openAiCompatibleChatModelLayer =
  "headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;organization?:s;project?:s;model:s;provider?:s;reasoningEffort?:'high''low''max''medium''minimal''none''xhigh';thinking?:'high''low''max''medium''off''xhigh'{budget:n};stop?:[s];store?:b;thinkTags?:'auto''off''prefilled';strictTools?:b;cacheMarks?:b;parameters?:o;contextWindowTokens?:n;supportsVision?:b;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};structuredOutput?:'native''tool';abilities?:['compaction''toolChanges''toolSearch'];temperature?:n;topP?:n;maxOutputTokens?:n;verbosity?:'high''low''medium';parallelToolCalls?:b;serviceTier?:'auto''default''fast''flex''priority''scale';promptCacheKey?:s;promptCacheRetention?:'24h''in_memory';safetyIdentifier?:s;user?:s;metadata?:<s>;apiKey?:~effect/Redacted~;baseURL?:s;azure?:{endpoint:s;apiVersion?:s;deployment?:s;accessToken?:~effect/Effect~}"

export const openAiEmbeddingModelLayer =
  "headers?:<s~effect/Redacted~>;fetch?:f;timeout?:d;model:s;baseURL?:s;apiKey?:~effect/Redacted~;dimensions?:n;batchSize?:n"
