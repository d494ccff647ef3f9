/* The box on the page at /: one message, its answer as it comes. Nothing is sent anywhere but to this server. */
"use strict";

(() => {
    const at = (id) => document.getElementById(id);
    const box = at("box"), agent = at("agent"), key = at("key"), text = at("text"), answer = at("answer");
    const buttons = { send: at("send"), stop: at("stop"), anew: at("anew") };
    const KEY = "taskdesk.key";
    let task = null, context = null, artifacts = new Map(), words = "", reading = false;

    // The key comes behind the # of the printed address, and leaves the address bar at once.
    const given = new URLSearchParams(location.hash.slice(1)).get("key");
    if (given) {
        sessionStorage.setItem(KEY, given);
        history.replaceState(null, "", location.pathname);
    }
    key.value = sessionStorage.getItem(KEY) || "";

    const example = () => agent.selectedOptions[0].dataset.say;
    text.value = example();
    box.hidden = false;

    agent.addEventListener("change", () => { begin(); text.value = example(); });
    buttons.anew.addEventListener("click", () => { begin(); text.focus(); });
    buttons.stop.addEventListener("click", cancel);
    box.addEventListener("submit", (event) => { event.preventDefault(); send(); });
    text.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { box.requestSubmit(); }
    });

    function begin() {
        task = context = null;
        forget();
        buttons.anew.hidden = answer.hidden = at("wire").hidden = true;
        say("");
    }

    function forget() {
        artifacts = new Map();
        words = "";
        at("frames").textContent = answer.textContent = "";
    }

    function say(sentence, wrong = false) {
        at("state").textContent = sentence;
        at("state").classList.toggle("wrong", wrong);
    }

    function post(method, params, signal) {
        return fetch(`/agents/${encodeURIComponent(agent.value)}/jsonrpc`, {
            method: "POST",
            signal,
            headers: {
                "Authorization": `Bearer ${key.value.trim()}`, "Content-Type": "application/json", "A2A-Version": "1.0",
                "Accept": "text/event-stream, application/json",
            },
            body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
        });
    }

    const fresh = () => `page-${Date.now()}-${Math.random().toString(36).slice(2)}`;

    async function send() {
        if (reading) { return; }
        sessionStorage.setItem(KEY, key.value.trim());
        const message = { messageId: fresh(), role: "ROLE_USER", parts: [{ text: text.value }] };
        if (task) { Object.assign(message, { taskId: task, contextId: context }); }
        forget();
        answer.hidden = at("wire").hidden = false;
        working(true);
        say("sending");
        try {
            await read(await post("SendStreamingMessage", { message }));
        } catch (error) {
            say(`The connection broke: ${error.message}. The task goes on.`, true);
        }
        working(false);
    }

    function working(now) {
        reading = now;
        buttons.send.disabled = now;
        buttons.stop.disabled = !now;
        agent.disabled = now;
    }

    async function cancel() {
        if (!task) { return; }
        const refused = (await (await post("CancelTask", { id: task })).json()).error;
        if (refused) { say(refused.message, true); }
    }

    async function read(response) {
        if (!(response.headers.get("Content-Type") || "").startsWith("text/event-stream")) {
            take(await response.text());
            return;
        }
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
            const { done, value } = await reader.read();
            if (done) { return; }
            const events = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
            rest = events.pop();
            for (const event of events) {
                const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
                if (data.length) { take(data.join("\n")); }
            }
        }
    }

    function take(payload) {
        at("frames").textContent += `${payload}\n`;
        let reply;
        try { reply = JSON.parse(payload); } catch { say("The answer is no JSON.", true); return; }
        if (reply.error) { say(reply.error.message, true); return; }
        const { task: whole, message, statusUpdate, artifactUpdate } = reply.result || {};
        if (whole) {
            [task, context] = [whole.id, whole.contextId];
            for (const artifact of whole.artifacts || []) { artifacts.set(artifact.artifactId, textOf(artifact.parts)); }
            follow(whole.status);
        }
        if (statusUpdate) { follow(statusUpdate.status); }
        if (artifactUpdate) {
            const { artifact, append } = artifactUpdate, former = append ? artifacts.get(artifact.artifactId) || "" : "";
            artifacts.set(artifact.artifactId, former + textOf(artifact.parts));
        }
        if (message) { words = textOf(message.parts); say("answered without a task"); }
        answer.textContent = [...artifacts.values(), words].filter(Boolean).join("\n\n");
    }

    function follow(status) {
        const state = (status.state || "").replace("TASK_STATE_", "").toLowerCase().replaceAll("_", " ");
        const asks = state === "input required" || state === "auth required";
        const ended = ["completed", "failed", "canceled", "rejected"].includes(state);
        words = status.message && (asks || ended) ? textOf(status.message.parts) : "";
        const note = status.message && !words ? `: ${textOf(status.message.parts)}` : "";
        say(asks ? "it asks back: answer in the box" : state + note, state === "failed" || state === "rejected");
        buttons.anew.hidden = !asks;
        if (asks) { text.value = ""; text.focus(); }
        if (ended) { task = context = null; }
    }

    function textOf(parts) {
        return (parts || []).map((part) => part.text ?? (part.data === undefined ? `[${part.filename || part.mediaType || "file"}]` : JSON.stringify(part.data, null, 2))).join("");
    }
})();
