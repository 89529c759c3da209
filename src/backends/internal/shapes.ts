/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const agentHomeLayer = "agentId:s;folder?:s;files:~effect/Layer~"

export const agentHomeLayerSandbox = "agentId:s;folder?:s;files:~effect/Layer~"

export const bashLayer =
  "id?:s;env?:<s>;network?:[s];outputLimit?:n;maxCommands?:n;maxLoopIterations?:n;maxCallDepth?:n"

export const compositeBackendLayer = "default:~effect/Layer~;routes:<~effect/Layer~>"

export const compositeBackendLayerSandbox = "default:~effect/Layer~;routes:<~effect/Layer~>"

export const customBackendLayer = "maxFileSize?:n;concurrency?:n"

export const customBackendMake = "maxFileSize?:n;concurrency?:n"

export const customSandboxLayer = "root?:s;maxFileSize?:n;outputLimit?:n"

export const daytonaSandboxMake =
  "root?:s;manifest?:{secrets?:[s];network?:'none''open';ports?:[n];limits?:{memoryBytes?:n;cpus?:n};image:s;environment?:<s>;files?:<s>;repositories?:[{url:s;path:s;ref?:s}]};create?:o;maxFileSize?:n;outputLimit?:n;sandboxId?:s;keep?:b;apiKey?:~effect/Redacted~;apiUrl?:s;target?:s"

export const dockerSandboxMake =
  "manifest:{secrets?:[s];network?:'none''open'{name:s};ports?:[n];limits?:{processes?:n;memoryBytes?:n;cpus?:n};image:s;environment?:<s>;files?:<s>;repositories?:[{url:s;path:s;ref?:s}]};folder?:s;keep?:b;user?:s;capabilities?:[s];egress?:f;maxFileSize?:n;outputLimit?:n;socket?:s"

export const e2bSandboxMake =
  "manifest?:{network?:'none''open';ports?:[n];image:s;environment?:<s>;files?:<s>;repositories?:[{url:s;path:s;ref?:s}]};template?:s;create?:o;root?:s;maxFileSize?:n;outputLimit?:n;sandboxId?:s;keep?:b;apiKey?:~effect/Redacted~;domain?:s"

export const fileToolsMake =
  "only?:['delete_file''edit_file''glob''grep''ls''move_file''read_file''write_file'];documents?:a;execute?:b{timeout?:d;maxTimeout?:d;background?:b}"

export const filesystemBackendMake = "root:s;ripgrep?:bs;maxFileSize?:n"

export const hostFilesMake = "cwd:s;folders?:a~effect/Effect~;scratch?:s;advise?:f;ripgrep?:bs;maxFileSize?:n"

export const hostShellMake =
  "ripgrep?:bs;maxFileSize?:n;cwd:s;folders?:a~effect/Effect~;scratch?:s;advise?:f;env?:o;shell?:s;outputLimit?:n"

export const langSmithSandboxMake =
  "manifest?:{network:'open';limits?:{memoryBytes?:n;cpus?:n};image:s;environment?:<s>;files?:<s>;repositories?:[{url:s;path:s;ref?:s}]};snapshot?:s;create?:o;root?:s;maxFileSize?:n;outputLimit?:n;sandboxId?:s;keep?:b;apiKey?:~effect/Redacted~;url?:s"

export const localShellMake = "root:s;ripgrep?:bs;maxFileSize?:n;env?:o;shell?:s;outputLimit?:n"

export const memoryBackendMake = "files?:<os>;maxFileSize?:n"

export const modalSandboxMake =
  "root?:s;maxFileSize?:n;manifest?:{network?:'none''open';ports?:[n];limits?:{memoryBytes?:n;cpus?:n};image:s;environment?:<s>;files?:<s>;repositories?:[{url:s;path:s;ref?:s}]};image?:s;create?:o;outputLimit?:n;sandboxId?:s;keep?:b;tokenId?:~effect/Redacted~;tokenSecret?:~effect/Redacted~;environment?:s;app?:s"

export const osSandboxMake =
  "snapshots?:s;root:s;ripgrep?:bs;maxFileSize?:n;env?:o;shell?:s;outputLimit?:n;readable?:[s];writable?:[s];limits?:{memoryBytes?:n;processes?:n;fileBytes?:n;openFiles?:n};egress?:f"

export const osSandboxMakeHost =
  "ripgrep?:bs;maxFileSize?:n;env?:o;shell?:s;outputLimit?:n;cwd:s;folders?:a~effect/Effect~;scratch?:s;advise?:f;readable?:[s];writable?:[s];limits?:{memoryBytes?:n;processes?:n;fileBytes?:n;openFiles?:n};egress?:f"

export const osSandboxMakeProgram =
  "command:[s];cwd:s;env?:<s>;readable?:[s];writable?:[s];limits?:{memoryBytes?:n;processes?:n;fileBytes?:n;openFiles?:n};egress?:f"

export const permissionsLayer =
  "rules:[{operations:['execute''read''write'];paths?:[s];ruling:'allow''ask''refuse';name?:s;reason?:s;deciders?:[s];expiresIn?:n}];default?:'allow''refuse'"

export const processesLayer = "most?:n;time?:d;output?:n;folder?:s"

export const runloopSandboxMake =
  "root?:s;manifest?:{network:'open'{name:s};ports?:[n];limits?:{memoryBytes:n;cpus:n};image:s;environment?:<s>;files?:<s>;repositories?:[{url:s;path:s;ref?:s}]};create?:o;maxFileSize?:n;outputLimit?:n;sandboxId?:s;keep?:b;apiKey?:~effect/Redacted~;baseURL?:s"

export const storeBackendMake = "namespace:[s]s~effect/Effect~;maxFileSize?:n"

export const vercelSandboxMake =
  "root?:s;maxFileSize?:n;manifest?:{network?:'none''open';ports?:[n];limits?:{cpus?:n};image:s;environment?:<s>;files?:<s>;repositories?:[{url:s;path:s;ref?:s}]};create?:o;outputLimit?:n;sandboxId?:s;keep?:b;token?:~effect/Redacted~;teamId?:s;projectId?:s"
