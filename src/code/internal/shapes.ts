/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const adaptiveMake = "worker:~effect-deepagents/Agent~;limits?:{memory?:n;time?:d;calls?:n;output?:n}"

export const codeModeMake =
  "tools?:[~Tool:prepare~];agents?:[~effect-deepagents/Agent~];review?:b;store?:'call''thread''turn';limits?:{memory?:n;time?:d;calls?:n;output?:n};inline?:n"

export const nodeScriptsLayer = "warm?:n;most?:n"

export const workflowMake =
  "name?:s;description?:s;agents:[~effect-deepagents/Agent~];tools?:[~Tool:prepare~];review?:b;limits?:o;script?:{memory?:n;time?:d;calls?:n}"
