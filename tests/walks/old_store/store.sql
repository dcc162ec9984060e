BEGIN TRANSACTION;
CREATE TABLE toolcrib_app_data (
	user TEXT NOT NULL, 
	package TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (user, package, "key"), 
	FOREIGN KEY(user, package) REFERENCES toolcrib_installs (user, package) ON DELETE CASCADE
);
INSERT INTO "toolcrib_app_data" VALUES('ann','com.example.notes','color','green');
CREATE TABLE toolcrib_app_tools (
	package TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	definition TEXT NOT NULL, 
	original TEXT, 
	PRIMARY KEY (package, position), 
	FOREIGN KEY(package) REFERENCES toolcrib_apps (package) ON DELETE CASCADE
);
INSERT INTO "toolcrib_app_tools" VALUES('com.example.notes',0,'{"name": "find_note", "description": "Find the note about something and return its text, or say that there is none.", "inputSchema": {"type": "object", "properties": {"about": {"type": "string", "description": "What it is about"}}, "required": ["about"]}, "mentraExtensions": {"activationPhrases": ["find my note"], "category": "productivity"}}',NULL);
CREATE TABLE toolcrib_apps (
	package TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	public_url TEXT, 
	url_giver TEXT, 
	app_type TEXT NOT NULL, 
	hardware TEXT NOT NULL, 
	permissions TEXT NOT NULL, 
	digest TEXT, 
	signing TEXT, 
	version BIGINT NOT NULL, 
	created DOUBLE NOT NULL, 
	updated DOUBLE NOT NULL, 
	PRIMARY KEY (package)
);
INSERT INTO "toolcrib_apps" VALUES('com.example.notes','Notes','admin','http://127.0.0.1:1','operator','background','[]','[]','tc1:f8f1f69b:Uv_11_qerML3frkrCYdhHOvQD0ucSYMJinplDS-Zw7bu6_wHSqz_xJaBsIgFmnGrlIq9vqRIz9wS-Wjs3nvR32sfiW2f7-npNUSwQNrOSk_uMkTy6ft7L-ecj3U=','tc1:f8f1f69b:QRfQAar9BB5fGjW0e0k9bndwJJB6U0QEQfNeScp1cE0bXLCKx_1rAPFvtU2x21NqEe64hEGlOjUJLKYtaF0ubopk2qbO1wUZ8bZw2q48VrIeXnA_kyTBd1Qmo4E=',2,1.79506288861769652365e+09,1.79506288865535330772e+09);
CREATE TABLE toolcrib_audit (
	number INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	actor_kind TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	user TEXT, 
	frontend TEXT NOT NULL, 
	address TEXT NOT NULL, 
	process TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	"before" TEXT, 
	"after" TEXT, 
	outcome TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "toolcrib_audit" VALUES(1,1795062888.572,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','keys.create','agent',NULL,'{"name": "agent", "permissions": [], "contexts": null, "home": "few", "actAs": false, "user": null, "created": 1795062888.54406, "createdBy": "admin", "expires": null, "rotated": null, "previousUntil": null, "revoked": null, "lastUsed": null}','success','0000000000000000000000000000000000000000000000000000000000000000','34e73a91fb7b5b8e1188cbce1491fedf35dfb9983dd5355f85178a17bfd5bd06');
INSERT INTO "toolcrib_audit" VALUES(2,1795062888.608,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','keys.create','operator',NULL,'{"name": "operator", "permissions": ["crib:admin"], "contexts": null, "home": "default", "actAs": false, "user": null, "created": 1795062888.5897195, "createdBy": "admin", "expires": null, "rotated": null, "previousUntil": null, "revoked": null, "lastUsed": null}','success','34e73a91fb7b5b8e1188cbce1491fedf35dfb9983dd5355f85178a17bfd5bd06','84a0c71b727632c47d768fde21f231bcc0225b16017f75e645d289c7f9bbe64f');
INSERT INTO "toolcrib_audit" VALUES(3,1795062888.65,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','apps.update','com.example.notes',NULL,'{"name": "Notes", "owner": "admin", "publicUrl": "http://127.0.0.1:1", "appType": "background", "hardwareRequirements": [], "permissions": [], "version": 1}','success','84a0c71b727632c47d768fde21f231bcc0225b16017f75e645d289c7f9bbe64f','0f497fff057c4c5e447dc02bbf7606b854671bc5aea4087efb7db0d0707ffff0');
INSERT INTO "toolcrib_audit" VALUES(4,1795062888.66,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','apps.define_tools','com.example.notes','{"version": 1, "tools": []}','{"version": 2, "tools": ["find_note"]}','success','0f497fff057c4c5e447dc02bbf7606b854671bc5aea4087efb7db0d0707ffff0','e8a6912a5c9ac972f83f167591c79e820936bd5d2e054d7ea82de258153164cd');
INSERT INTO "toolcrib_audit" VALUES(5,1795062888.683,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','users.update','ann',NULL,'{"language": "de", "timeZone": null}','success','e8a6912a5c9ac972f83f167591c79e820936bd5d2e054d7ea82de258153164cd','645c59642fee11de449e9fc617086d88446d7f397ab05af873f27f493a60f637');
INSERT INTO "toolcrib_audit" VALUES(6,1795062888.702,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','users.install','ann/com.example.notes',NULL,'{"settings": []}','success','645c59642fee11de449e9fc617086d88446d7f397ab05af873f27f493a60f637','658c3e89215cfcf8547a4c51ba992fa4dbc51c784085e07ac8ffd18b3148d16a');
INSERT INTO "toolcrib_audit" VALUES(7,1795062888.709,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','users.begin_session','ann',NULL,'{"sessionId": "ebe0e374-c649-45e5-89fe-6e19e453962f", "device": null, "language": "de", "timeZone": null, "startedAt": 1795062888.706787}','success','658c3e89215cfcf8547a4c51ba992fa4dbc51c784085e07ac8ffd18b3148d16a','c98096a84525250477f68cacb6d0ecdebbdea6da4cf656cc96d98a1386706b8f');
INSERT INTO "toolcrib_audit" VALUES(8,1795062888.769,'admin','admin',NULL,'rest','127.0.0.1','vm:6515','servers.add','files',NULL,'{"transport": "stdio", "start": "lazy", "program": "server", "arguments": 1, "env": ["TOKEN"]}','success','c98096a84525250477f68cacb6d0ecdebbdea6da4cf656cc96d98a1386706b8f','701646cb201e0891712d537354b42520d3e6d7841680ace139f786c2445763da');
CREATE TABLE toolcrib_calls (
	number INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	tool TEXT NOT NULL, 
	caller TEXT NOT NULL, 
	user TEXT, 
	context TEXT NOT NULL, 
	face TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	code TEXT, 
	milliseconds DOUBLE NOT NULL, 
	cached BOOLEAN NOT NULL, 
	trace TEXT NOT NULL, 
	mutation BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "toolcrib_calls" VALUES(1,'f385dc5c-2c00-4a39-8d51-62cb5c852dbd',1.79506288878324770925e+09,'crib:mcp_add_server','admin',NULL,'default','rest','success',NULL,7.18191529999785416293e+01,0,'d6779318-4613-442d-833b-ad1e1df06d2f',1);
CREATE TABLE toolcrib_claims (
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "toolcrib_claims" VALUES('await_energy','crib:await_energy');
INSERT INTO "toolcrib_claims" VALUES('control_volume','local:control-volume');
INSERT INTO "toolcrib_claims" VALUES('flat:crib:await_energy','1.1');
INSERT INTO "toolcrib_claims" VALUES('flat:crib:mcp_add_server','1.1');
INSERT INTO "toolcrib_claims" VALUES('flat:crib:mcp_list_servers','1.1');
INSERT INTO "toolcrib_claims" VALUES('flat:crib:search_tools','1.1');
INSERT INTO "toolcrib_claims" VALUES('flat:local:control-volume','1.0');
INSERT INTO "toolcrib_claims" VALUES('flat:local:get-datetime','1.0');
INSERT INTO "toolcrib_claims" VALUES('flat:local:search-web','1.0');
INSERT INTO "toolcrib_claims" VALUES('get_datetime','local:get-datetime');
INSERT INTO "toolcrib_claims" VALUES('mcp_add_server','crib:mcp_add_server');
INSERT INTO "toolcrib_claims" VALUES('mcp_list_servers','crib:mcp_list_servers');
INSERT INTO "toolcrib_claims" VALUES('search_tools','crib:search_tools');
INSERT INTO "toolcrib_claims" VALUES('search_web','local:search-web');
INSERT INTO "toolcrib_claims" VALUES('com_example_notes_find_note','com.example.notes:find_note');
INSERT INTO "toolcrib_claims" VALUES('flat:com.example.notes:find_note','4.0.app');
CREATE TABLE toolcrib_clock (
	id INTEGER NOT NULL, 
	seen DOUBLE NOT NULL, 
	boot TEXT NOT NULL, 
	elapsed DOUBLE NOT NULL, 
	wall DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "toolcrib_clock" VALUES(1,1.79506289179214072225e+09,'ba862d31-fd4d-4ac5-8958-1455b134a1a6',2404.411334279,1.79506289179214549066e+09);
CREATE TABLE toolcrib_data_keys (
	id TEXT NOT NULL, 
	wrapped_by TEXT NOT NULL, 
	salt TEXT NOT NULL, 
	"check" TEXT NOT NULL, 
	wrapped TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "toolcrib_data_keys" VALUES('f8f1f69b','admin_key','ad338590636c39be30491e3fda77644e','191109623a17b131b61af0467b6ee818','sOWL3MX_lnsu_i_wn7oQuxunZ5htBJbiJH-d7hbhO48EdIeYNER6ihGoWCU3HfFzpQMNjn1N_r6X0rdy',1.79506288863619351383e+09);
CREATE TABLE toolcrib_definitions (
	name TEXT NOT NULL, 
	definition TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	trusted TEXT NOT NULL, 
	seen DOUBLE NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE toolcrib_disabled (
	user TEXT NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (user, name), 
	FOREIGN KEY(user) REFERENCES toolcrib_users (id) ON DELETE CASCADE
);
CREATE TABLE toolcrib_installs (
	user TEXT NOT NULL, 
	package TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	settings TEXT NOT NULL, 
	PRIMARY KEY (user, package), 
	FOREIGN KEY(user) REFERENCES toolcrib_users (id) ON DELETE CASCADE, 
	FOREIGN KEY(package) REFERENCES toolcrib_apps (package) ON DELETE CASCADE
);
INSERT INTO "toolcrib_installs" VALUES('ann','com.example.notes',1.79506288868658113477e+09,'{}');
CREATE TABLE toolcrib_keys (
	name TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	permissions TEXT NOT NULL, 
	contexts TEXT, 
	home TEXT NOT NULL, 
	act_as BOOLEAN NOT NULL, 
	user TEXT, 
	created DOUBLE NOT NULL, 
	rotated DOUBLE, 
	revoked DOUBLE, 
	created_by TEXT, 
	last_used DOUBLE, 
	expires DOUBLE, 
	previous_digest TEXT, 
	previous_until DOUBLE, 
	changed BIGINT DEFAULT '0' NOT NULL, 
	purged DOUBLE, 
	PRIMARY KEY (name)
);
INSERT INTO "toolcrib_keys" VALUES('agent','46e3daa3f0296e72666c084a5e69e1e7d7931c7b2d4a6e30e3b87ff24e490ad6','[]',NULL,'few',0,NULL,1795062888.54406,NULL,NULL,'admin',1.79506288878926587105e+09,NULL,NULL,NULL,1,NULL);
INSERT INTO "toolcrib_keys" VALUES('operator','a6a21d180a1946ef38b6d1dde7b5854e5a42ba18d245b828dd18a1905534f02b','["crib:admin"]',NULL,'default',0,NULL,1.79506288858971953387e+09,NULL,NULL,'admin',NULL,NULL,NULL,NULL,2,NULL);
CREATE TABLE toolcrib_marks (
	name TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "toolcrib_marks" VALUES('gateway',949813626049790730);
INSERT INTO "toolcrib_marks" VALUES('keys',2);
INSERT INTO "toolcrib_marks" VALUES('apps',2);
CREATE TABLE toolcrib_mcp_sessions (
	id TEXT NOT NULL, 
	principal TEXT NOT NULL, 
	used DOUBLE NOT NULL, 
	ended BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE toolcrib_overlay (
	id INTEGER NOT NULL, 
	version BIGINT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "toolcrib_overlay" VALUES(1,1,'{"mcp": {"servers": {"files": "tc1:f8f1f69b:1XiduDztPlIVRqDWlyfh4ETQvLO2s04wUXgGvQKLiHQFF2bq8qMJmmBqJVFvfqmUzdndguq9dy5IbNZYr59ZuTSjmGR-zU_rhG8luljYYV811kUrPHABySlmfHKmcSWzykEWunG5sCTe9ZZfVuStfE4OC9o8N-oMCLYBX-cMBzmDLy-54YwL3_X1kEjNUSi8-4U0QYIVVHYjT9h5gJWVgbWD1cFzM1meWAn6aT-8-363ZLIdlfvg"}}, "url_givers": {"files": "operator"}}');
CREATE TABLE toolcrib_replays (
	"key" TEXT NOT NULL, 
	call TEXT NOT NULL, 
	body TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	until DOUBLE NOT NULL, 
	answer TEXT, 
	owner TEXT DEFAULT '' NOT NULL, 
	bytes BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "toolcrib_replays" VALUES('e8efaac76c3541dab43d42deb9c4226a7a1b803699b69337d536355ee51fc4fd','f385dc5c-2c00-4a39-8d51-62cb5c852dbd','0f832213e9f27170770e01e5eb6cebe0b62895ee727a963a14f3931abee94922','vm ba862d31-fd4d-4ac5-8958-1455b134a1a6/4026531836 6515 239900 9cd37d2f5a89300c',1.7950628887114756107e+09,1.79506378871147561073e+09,'{"data":{"server":"files","state":"down","tools":[],"error":"there is no program at /nowhere/server; install it or correct the path"},"structured":true,"content":[],"problem":null,"message":"I added files, but it does not run yet. It is tried again.","voice":{"suppress":false,"follow_ups":[]},"hints":null,"evidence":null,"meta":{}}','admin',333);
CREATE TABLE toolcrib_revision (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT toolcrib_revision_pkc PRIMARY KEY (version_num)
);
INSERT INTO "toolcrib_revision" VALUES('0010');
CREATE TABLE toolcrib_sessions (
	user TEXT NOT NULL, 
	id TEXT NOT NULL, 
	device TEXT, 
	language TEXT, 
	time_zone TEXT, 
	started DOUBLE NOT NULL, 
	used DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (user), 
	FOREIGN KEY(user) REFERENCES toolcrib_users (id) ON DELETE CASCADE
);
INSERT INTO "toolcrib_sessions" VALUES('ann','ebe0e374-c649-45e5-89fe-6e19e453962f',NULL,'de',NULL,1.79506288870678710938e+09,1.79506288870679020877e+09);
CREATE TABLE toolcrib_usage (
	day TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	caller TEXT NOT NULL, 
	calls BIGINT NOT NULL, 
	errors BIGINT NOT NULL, 
	cached BIGINT NOT NULL, 
	milliseconds DOUBLE NOT NULL, 
	last_used DOUBLE NOT NULL, 
	l00 BIGINT NOT NULL, 
	l01 BIGINT NOT NULL, 
	l02 BIGINT NOT NULL, 
	l03 BIGINT NOT NULL, 
	l04 BIGINT NOT NULL, 
	l05 BIGINT NOT NULL, 
	l06 BIGINT NOT NULL, 
	l07 BIGINT NOT NULL, 
	l08 BIGINT NOT NULL, 
	l09 BIGINT NOT NULL, 
	l10 BIGINT NOT NULL, 
	l11 BIGINT NOT NULL, 
	l12 BIGINT NOT NULL, 
	l13 BIGINT NOT NULL, 
	l14 BIGINT NOT NULL, 
	PRIMARY KEY (day, tool, caller)
);
INSERT INTO "toolcrib_usage" VALUES('2026-11-19','crib:mcp_add_server','admin',1,0,0,7.18191529999785416293e+01,1.79506288878324770925e+09,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0);
CREATE TABLE toolcrib_users (
	id TEXT NOT NULL, 
	language TEXT, 
	time_zone TEXT, 
	created DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "toolcrib_users" VALUES('ann','de',NULL,1.79506288867205452916e+09);
CREATE INDEX toolcrib_keys_changed ON toolcrib_keys (changed, name);
CREATE INDEX toolcrib_calls_newest ON toolcrib_calls (at, number);
CREATE INDEX toolcrib_calls_kept ON toolcrib_calls (mutation, at, number);
CREATE INDEX toolcrib_replays_owner ON toolcrib_replays (owner, at, bytes);
CREATE INDEX toolcrib_replays_oldest ON toolcrib_replays (at);
CREATE INDEX toolcrib_mcp_sessions_used ON toolcrib_mcp_sessions (used);
CREATE INDEX toolcrib_mcp_sessions_principal ON toolcrib_mcp_sessions (principal, used);
CREATE TRIGGER toolcrib_audit_update BEFORE UPDATE ON toolcrib_audit BEGIN SELECT RAISE(ABORT, 'audit records cannot be changed or deleted'); END;
CREATE TRIGGER toolcrib_audit_delete BEFORE DELETE ON toolcrib_audit BEGIN SELECT RAISE(ABORT, 'audit records cannot be changed or deleted'); END;
CREATE TRIGGER toolcrib_audit_replace BEFORE INSERT ON toolcrib_audit WHEN NEW.number <= (SELECT max(number) FROM toolcrib_audit) BEGIN SELECT RAISE(ABORT, 'audit records cannot be changed or deleted'); END;
CREATE INDEX toolcrib_installs_package ON toolcrib_installs (package, user);
CREATE INDEX toolcrib_sessions_used ON toolcrib_sessions (used);
COMMIT;
