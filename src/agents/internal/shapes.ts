/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const agentFileCompile =
  "tools?:[~Tool:prepare~];agents?:a;servers?:{names:[s];make:f};model?:f;approvals?:{tools?:<bf{name?:s;when?:f;allow?:['approve''edit''reject''respond'];deciders?:[s];describe?:f;likeness?:f}>;destructive?:b;except?:f;expiresIn?:d;inherit?:b};taint?:{strict?:b;untrusted?:[s];trusted?:[s];acts?:[s];harmless?:[s];except?:f;hosts?:[s];servers?:[s];secrets?:<[s]>;clearance?:<[s]>;deciders?:[s]};middleware?:[~effect-deepagents/Middleware~];lead?:[~effect-deepagents/Middleware~];documents?:a;memory?:[s{path:s;text:s;readOnly?:b}];skills?:[s];output?:~effect/Schema/Schema~;maxRounds?:n"

export const agentFileParse = "path:s;claude?:b"

export const extensionMake =
  "name:s;tools?:[~Tool:prepare~];middleware?:[~effect-deepagents/Middleware~];commands?:a;hooks?:a;providers?:a;themes?:<o>"
