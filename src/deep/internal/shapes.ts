/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const deepAgentMake =
  "subagents?:a;backgroundSubagents?:a;generalPurpose?:b{description?:s;prompt?:s};maxDepth?:n;verify?:s;goal?:[s];reflect?:bn;facts?:{namespace:s;recall?:n;extract?:b};approvals?:{tools?:<bf{name?:s;when?:f;allow?:['approve''edit''reject''respond'];deciders?:[s];describe?:f;likeness?:f}>;destructive?:b;except?:f;expiresIn?:d;inherit?:b};name:s;description?:s;prompt:s~effect/Effect~;tools?:[~Tool:prepare~];files?:['delete_file''edit_file''glob''grep''ls''move_file''read_file''write_file'];documents?:a;execute?:b{timeout?:d;maxTimeout?:d;background?:b};middleware?:[~effect-deepagents/Middleware~];todos?:b;memory?:[s{path:s;text:s;readOnly?:b}];skills?:[s];agentId?:s;summarization?:b{model?:~effect/Layer~;trigger?:[{fraction?:n;tokens?:n;messages?:n}]{fraction?:n;tokens?:n;messages?:n};tail?:{fraction?:n;tokens?:n;messages?:n};contextWindowTokens?:n;counter?:o;background?:b};largeResults?:b{toolResults?:n;userMessages?:n;folder?:s;keep?:n};profiles?:a;output?:~effect/Schema/Schema~~standard~;parameters?:o;maxRounds?:n;toolConcurrency?:n;stopWhen?:[f]"

export const deepAgentSubagent =
  "name:s;description?:s;prompt:s~effect/Effect~;tools?:[~Tool:prepare~];files?:['delete_file''edit_file''glob''grep''ls''move_file''read_file''write_file'];documents?:a;execute?:b{timeout?:d;maxTimeout?:d;background?:b};middleware?:[~effect-deepagents/Middleware~];todos?:b;memory?:[s{path:s;text:s;readOnly?:b}];skills?:[s];agentId?:s;summarization?:b{model?:~effect/Layer~;trigger?:[{fraction?:n;tokens?:n;messages?:n}]{fraction?:n;tokens?:n;messages?:n};tail?:{fraction?:n;tokens?:n;messages?:n};contextWindowTokens?:n;counter?:o;background?:b};largeResults?:b{toolResults?:n;userMessages?:n;folder?:s;keep?:n};profiles?:a;output?:~effect/Schema/Schema~~standard~;parameters?:o;maxRounds?:n;toolConcurrency?:n;stopWhen?:[f]"

export const factsBundle = "namespace:s;recall?:n;extract?:b;view?:'buffer''summary'{messages?:n;tokens?:n;counter?:o}"

export const factsMake = "namespace:s;recall?:n;extract?:b"
