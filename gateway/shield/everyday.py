"""Words by which orders to a model are told from orders among people, in twenty languages. Judges nothing."""

# What speaks of a language model; words, beginnings of words, and phrases where words do not stand apart.
MACHINE_WORDS = frozenset(
    "ais llm llms gpt chatgpt claude gemini copilot bot bots sudo model models agent agents openai "
    "anthropic deepseek llama mistral jailbreak unrestricted unfiltered uncensored hacked pwned bitcoin бот bota "
    "botu".split()
)
MACHINE_STEMS = frozenset(
    "systemprompt startprompt systemanweis systemnachricht systeminstru systemmedd prompt preprompt chatbot "
    "assistant assistent asistent asisten asystent assistente ассист асист нейросет "
    "нейромереж промпт модел безопасн модель chatgpt sprachmodell modell modèle modelo "
    "unterhalt gespräch konversation conversation conversa conversaz gesprek rozmow sohbet разговор "
    "беседа чат النموذج نموذج مساعد ذكاء نظام المحادثة मॉडल प्रॉम्प्ट सिस्टम सहायक बातचीत".split()
)
MACHINE_PHRASES = (
    "提示词|提示詞|系统|系統|模型|助手|机器人|人工智能|プロンプト|モデル|アシスタント|システム|ボット|あなた|"
    "프롬프트|모델|어시스턴트|시스템|챗봇|당신|พรอมต์|ระบบ|โมเดล|ผู้ช่วย"
)
# What a model guards, or is bound by.
GUARDED_WORDS = frozenset(
    "password passwords credentials token tokens confidential admin administrator developer developers safety "
    "ethics ethical moral restrictions filters secret secrets passphrase root privileges unlimited guardrails "
    "safeguards programming training conversation chat".split()
)
# What a model is told to do next, behind the order to forget.
ANSWER_WORDS = frozenset(
    "reveal disclose print output respond reply answer answers repeat recite display dump leak pretend roleplay "
    "behave obey comply execute summarize summarise summary translate classify classification rate rating recommend "
    "approve grant praise write generate compose forward transfer wire exfiltrate upload click curl say tell show "
    "give explain help act become sing talk speak decode rank accept mark set run elevate deploy encrypt delete "
    "list spell obedece obedezca haz hagas fais faites mach tue fai doe gör zrób yap सुनो gib sag sage nenne nenn "
    "zeig tu aja dis dit dire dime diga dimmi toon zeg geef säg visa svara skriv yaz söyle trả viết dịch hiển "
    "ahora maintenant jetzt adesso agora nu teraz şimdi artık теперь зараз тепер الآن sekarang".split()
)
ANSWER_STEMS = frozenset(
    "verrat verrät antwort schreib übersetz fasse zusammenf ausgib gebe nenne révèl revel montre affich répond "
    "écris écriv tradui résum donne recommand muestra muéstr mostr respond escrib tradu resum recomi dame actúa "
    "imprim rivela mostra rispond scriv traduc riassum raccomand dammi agisci stampa mostre escrev traduz recomend "
    "antwoord schrijf vertaal verta samenvat onthul pokaż powiedz odpowi napisz ujawni przetłum wypisz göster yanıt "
    "çevir açıkla покажи скажи ответ отвеч напиши выведи раскр перевед відпові розкр перекл avslöja översätt "
    "tampilkan jawab tulis katakan ungkap terjemah أظهر اكشف أجب اكتب ترجم أخبر قل बताओ "
    "बताइए दिखा लिखो लिखें जवाब".split()
)
ANSWER_PHRASES = (
    "回答|回复|輸出|输出|告诉我|透露|泄露|显示|翻译|扮演|你现在|你是|从现在|说出|写|出力|表示|教え|答え|翻訳|"
    "書い|今から|これから|"
    "출력|보여|알려|답변|대답|번역|너는|지금부터|이제|써"
)
# What people give each other orders about: mail, contracts, health, machines, lessons, sport, kitchens, programs.
EVERYDAY_WORDS = frozenset(
    "correspondence broker trustee settlor client's licence budget exam exams intranet nginx duties sentry "
    "gestern "
    "ayer ieri ontem gisteren wczoraj dün igår вчера вчора أمس kemarin "
    "monday tuesday wednesday thursday friday saturday sunday january february april june july august september "
    "october november december tomorrow yesterday tonight dinner lunch breakfast bedtime phones rinse readme reviewer "
    "refactor shoes laundry guests visitors visitor bucket attachment attachments neighbours elderly "
    "dress fridays voicemail kiosk queue email emails e-mail e-mails mail mails letter letters memo circular "
    "notices reminder reminders "
    "newsletter invoice invoices payment payments refund refunds receipt receipts quote quotes quotation offer "
    "offers fee fees booking bookings reservation reservations appointment appointments meeting meetings agenda "
    "calendar schedule schedules timetable shift shifts roster vacation holiday holidays payroll salary wages "
    "overtime timesheet timesheets expense expenses travel trip hotel parking garage canteen cafeteria kitchen "
    "uniform badge locker dishwasher supplier suppliers vendor delivery deliveries shipment shipments warehouse "
    "stock pallet staff employee employees colleague colleagues worker workers orientation onboarding booklet "
    "leaflet brochure handbook paperwork stationery gmbh ltd inc department hr accounting auditor contract "
    "contracts agreement agreements clause clauses annex lease tenancy tenant tenants landlord rent deposit "
    "insurance judge jury witness statute parties party bylaws ordinance permit passport customs dose "
    "doses dosage dosing tablet tablets pill pills medicine medication patient patients doctor nurse clinic surgery "
    "fasting diet vaccine bandage inhaler syrup ointment physio printer router modem firmware thermostat device "
    "devices reboot reset speaker headset camera washer washing engine pump valve oven stove microwave dryer fridge "
    "freezer boiler heater heating alarm elevator lift forklift crane tractor vehicle car bike bicycle scooter tyre "
    "tire battery charger drone lamp lighting sprinkler vacuum blender thermometer gearbox conveyor toner cartridge "
    "teacher teachers student students pupil pupils class classroom homework essay essays exercise exercises "
    "worksheet notebook partner lesson lessons school course lecture grade teacher's vocabulary grammar aloud "
    "blackboard coach team teammates match tournament referee league goalkeeper defending midfield chess board dice "
    "puzzle choir orchestra rehearsal dancers stretch recipe dough cake sauce flour sugar butter yeast batter "
    "marinade garden seeds soil watering compost waste recycling trash garbage bins sorting snow dog cat puppy "
    "child children kids son daughter mum mom dad grandma wedding birthday church knitting stitch row yarn sewing "
    "seam fabric paint varnish primer train bus flight platform boarding luggage airport ferry tram gate stairs "
    "siren assembly evacuation lighthouse git merge nft iptables firewall ruleset eslint linter lint stylesheet css "
    "dockerfile makefile gitignore webpack parser compiler crontab migration rebase defaults excel vlookup "
    "spreadsheet macro webinar immunization codfish fish soak codicils executor headquarters army troops "
    "reserve regiment leden vrijwilligers bénévoles pfadfinder volunteers".split()
)
EVERYDAY_STEMS = frozenset(
    "montag dienstag mittwoch donnerst freitag samstag sonntag lundi mardi mercredi jeudi vendredi "
    "samedi dimanche lunes "
    "martes miércoles jueves viernes sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica maandag "
    "dinsdag woensdag donderdag vrijdag zaterdag zondag måndag tisdag onsdag torsdag fredag lördag "
    "söndag poniedzia wtorek "
    "środ czwart piątek piątk sobot niedziel pazartesi salı çarşamba perşembe cumartesi понедельн "
    "вторник четверг пятниц "
    "суббот воскресен понеділ вівтор середу четвер пʼятниц неділ الاثنين الثلاثاء الأربعاء الخميس "
    "الجمعة السبت الأحد सोमवार "
    "मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार senin selasa rabu kamis jumat sabtu minggu "
    "вслух пересказ перескаж вголос перекаж hardop głos sesle lantang abschreib unterstreich souligne subraya "
    "sottoline "
    "besprech sitzung termin rechnung mahnung bestell liefer parkpl parkh tiefgar urlaub dienstpl schicht zeiterf "
    "reisekost spesen kleider müll abfall winterd mietv mieter vermieter vertrag vereinbar kündig gesetz verordn "
    "satzung formul antrag dosier tablett arzt praxis router drucker gerät zurücksetz heft übung aufgab schüler "
    "klasse lehrer hausauf rezept teig turnier mannsch trainer spielregel kantine kollegen mitarbeiter packungsb "
    "etikett garten schlüsselk réunion rendez facture relance livrai parking congé horaire planning frais "
    "télétrav tri déchet bail locat contrat accord clause règlement loi arrêté formulaire dosage comprim médecin "
    "routeur imprimante appareil réinitial cahier exercice élève classe profess devoir recette pâte tournoi "
    "équipe cantine collègue salari étiquet jardin copropri vélo fichier pièce reunión reunion cita factura "
    "pedido entrega aparcam estacion vacacion horario turno fichaje gasto viatic basura recicl alquil inquilin "
    "contrato acuerdo cláusula reglamento decreto formulario dosis pastilla médico impresora dispositivo restablec "
    "cuaderno ejercic alumno clase profesor deberes receta masa torneo equipo comedor compañer emplead prospecto "
    "etiqueta jardín adjunt archivo correo riunion appuntam fattura consegn parchegg ferie permess turni rifiut "
    "raccolta affitto contratt clausol regolament legge decret modulo dosagg compress medico farmac stampant "
    "dispositiv ripristin quadern eserciz alunn studen insegnant compit ricetta impast squadra collegh dipendent "
    "circolare bolletta etichett giardin condomin rimborsi spese allegat reunião consulta fatura encomenda "
    "estacionam férias horário despes refeitório lixo aluguel condom acordo regulam formulário dose dosag "
    "comprimido roteador impressora aparelho redefin reposiç caderno exercíc alunos turma professor receita massa "
    "torneio equipe cantina colega funcionári bula jardim teletrab anexo ficheiro voz vergadering afspraak factuur "
    "bestelling levering parkeren parkeer garage vakantie verlof rooster afval huur contract overeenkom wet besluit "
    "formulier dosering tablet arts huisarts printer apparaat reset schrift opdracht oefening leerling klas leraar "
    "huiswerk recept deeg toernooi ploeg collega medewerker bijsluiter etiket tuin onkosten möte faktura beställ "
    "leverans parker semester avfall sopsort sopor hyra avtal förordn blankett doser läkare skrivare apparat "
    "återställ häfte övning elev klass lärare läxa turnering matsal kolleg anställd bipacks trädgård parterna "
    "reseräk spotkani zebrani faktur zamówie dostaw parkow garaż urlop grafik zmian delegac śmieci odpad segreg "
    "czynsz najem umow porozum ustaw rozporz formularz dawk lekarz drukark urządz resetow zeszyt ćwicze uczni "
    "nauczyc domow ciast turniej drużyn stołówk koleg pracowni ulotk etykiet ogród bhp toplantı randevu sipariş "
    "teslim otopark park garaj izin vardiya bordro harcırah çöp atık kira sözleşme yönetmelik kanun doz doktor "
    "modem yazıcı cihaz sıfırla defter alıştır öğrenci sınıf öğretmen ödev tarif hamur turnuva takım yemekhan "
    "çalışan prospekt bahçe takvim kargo собран совещ встреч счет счёт счёта заказ достав парков отпуск график смен "
    "командир мусор аренд жильц договор соглаш закон приказ распоряж анкет форм доз таблет врач роутер принтер "
    "устройств сброс тетрад упражн учени класс учител домашн рецепт тесто турнир команд столов коллег сотрудн "
    "этикет огород охран труд билет поезд расписан накладн отчёт отчет субботник подъезд письм збор нарад зустріч "
    "рахун замовл відпуст графік змін відрядж смітт оренд мешкан договір угод наказ розпоряд лікар пристр скидан "
    "зошит вправ учн клас вчител тіст турнір їдальн колег працівн етикет город квит поїзд розклад лист اجتماع موعد "
    "فاتور طلبي توصيل موقف مواقف إجاز عطل دوام نفاي قمام إيجار مستأجر عقد اتفاق لائح قانون قرار استمار جرع دواء "
    "طبيب توجيه طابع جهاز أجهز ضبط دفتر تمرين طالب طلاب تلميذ معلم واجب وصف عجين بطول فريق مطعم زملاء موظف حديق رحل "
    "حفل لباس درس بريد شحن فاتورة बैठक मीटिंग मुलाक बिल चालान ऑर्डर डिलीव पार्किं छुट्ट शिफ्ट कचर किराय अनुबं समझौ "
    "कानून फॉर्म खुराक गोली डॉक्टर राउटर प्रिंटर रीसेट उपकरण कॉपी अभ्यास छात्र कक्षा शिक्षक गृहकार विधि आटा टूर्नाम "
    "टीम कर्मचार ईमेल फ़ाइल गैराज rapat janji tagihan pesanan pengirim parkir garasi cuti jadwal shift sampah sewa "
    "kontrak perjanjian peraturan undang formulir dokter pencetak perangkat direset buku latihan siswa kelas guru "
    "resep adonan turnamen kantin karyawan kebun undangan lampiran bacalh embalag schoolfot ouders briefje verpakk "
    "imunis posyand परीक्ष परीक्षा schul eltern parents élèves parent padres pais genitor родител батьк veli "
    "ebeveyn wali आदेश arhiv concedi spital ședin factur "
    "δευτέρα τρίτη τετάρτη πέμπτη παρασκευή σάββατο κυριακή πάρτι γιορτή συνάντη ραντεβού τιμολόγ παραγγελ αποστολ "
    "διακοπ άδει ενοίκι σύμβασ δόση φάρμακ γιατρ εκτυπωτ συσκευ μάθημα άσκησ μαθητ δάσκαλ σχολεί συνταγ παιχνίδ ομάδ "
    "mandag tirsdag torsdag fredag lørdag søndag møde møte aftale avtale faktura bestilling levering ferie fravær "
    "husleje husleie lejer leietaker kontrakt dosis dosering læge lege skriver elever klasse lærer skole opskrift "
    "oppskrift turnering kantine medarbejder ansatte skrald søppel maanantai tiistai keskiviik torstai perjantai "
    "lauantai sunnuntai kokous tapaaminen lasku tilaus toimitus pysäköin loma vuokra sopimus lomake annos lääk "
    "tulostin reititin laite oppila opettaj koulu läksy resepti turnaus joukkue työntek jätte "
    "pondělí úterý středa čtvrtek pátek sobota neděle schůzk faktur objednáv dodáv parkován dovolen směn nájem "
    "smlouv dohod zákon formulář dávkován lékař tiskárn směrovač zařízen cvičen žák učitel škol úkol recept turnaj "
    "zaměstnan odpad hétfő kedd szerda csütörtök péntek szombat vasárnap értekezlet találkozó számla rendelés szállít "
    "parkol szabads bérlet bérlő szerződés törvény űrlap adagol orvos nyomtató készülék gyakorlat tanuló tanár iskola "
    "feladat recept verseny csapat dolgozó szemét".split()
)
EVERYDAY_PHRASES = (
    "会议|星期|委托|昨天|预算|委任|昨日|予算|어제|예산|위임|hôm qua|师父|剑|茶|考试|学校|家长|开会|预约|发票|"
    "账单|订单|快递|停车|车库|请假|休假|报销|考勤|值班|排班|垃圾|租金|"
    "租赁|合同|协议|条例|规定自|表格|剂量|"
    "药|医生|路由器|打印机|设备|恢复出厂|重启|课文|练习|作业|学生|老师|抄写|食谱|面团|比赛|球队|食堂|员工|附件|"
    "邮件|通知|"
    "会議|打ち合わせ|予約|請求書|注文|配送|駐車|車庫|休暇|有給|勤怠|シフト|経費|出張|ゴミ|ごみ|家賃|契約|規程|"
    "条例|書類|用量|"
    "錠|医師|ルーター|プリンタ|機器|リセット|初期化|ノート|宿題|生徒|先生|レシピ|生地|試合|大会|食堂|社員|添付|メール|"
    "정전|선장|학교|시험|학부모|예약|청구서|주문|배송|주차|휴가|근무|교대|출장|경비|쓰레기|임대|계약|규정은|서식|"
    "복용|의사|공유기|프린터|기기|초기화|"
    "공책|숙제|학생|선생님|레시피|반죽|경기|대회|식당|직원|첨부|메일|"
    "cuộc họp|lịch hẹn|hóa đơn|đơn hàng|giao hàng|gửi xe|đỗ xe|nhà xe|nghỉ phép|ca làm|rác|thuê nhà|hợp đồng|nghị định|"
    "quy định này|biểu mẫu|liều|bác sĩ|định tuyến|máy in|thiết bị|đặt lại|vở|bài tập|học sinh|lớp|giáo viên|"
    "công thức|bột|"
    "giải đấu|căng tin|nhân viên|đính kèm|"
    "ประชุม|ใบแจ้งหนี้|จอดรถ|วันหยุด|สัญญา|เราเตอร์|การบ้าน|นักเรียน"
)
# Who may be without rules in a game, a tale or a daydream: things of nature, animals, figures of tales.
FIGURE_WORDS = frozenset(
    "leaf feather cloud clouds bird birds king queen prince princess knight knights pirate pirates cat cats "
    "kitten dog puppy dragon dragons ghost ghosts wizard wizards fairy fairies elf elves dwarf dwarves statue "
    "water river ocean wind wave tree flower mountain butterfly fish whale lion tiger wolf fox rabbit mouse horse "
    "eagle owl bear penguin cowboy astronaut superhero toddler genie djinn clown emperor viking samurai mermaid "
    "unicorn balloon kite kot ptak król pies lis chmura kedi kuş kaptan ejderha köpek кот король пират дракон "
    "рыцарь птица облако фея джинн привидение волк лиса кіт пірат лицар птах хмара хмаринка дзвоник raja "
    "naga burung kucing vua mèo chim roi reine lutin rey reina regina rainha kung drottning katt hund fågel drake "
    "kat hond wolk koning draak spook sirena sirène kobold hexe katze nuage nube nuvola nuvem gatto gato oiseau "
    "pájaro uccello pássaro ratón topo souris maus smok génie mago fata vögel".split()
)
FIGURE_STEMS = frozenset(
    "ritter könig drache pirat gespenst zauberer wolke feder schmetterling zwerg riese chevalier fantôme dragon "
    "magicien plume papillon caballero dragón fantasma pluma mariposa cavalier drago pirata piuma farfalla "
    "cavaleiro dragão borbolet ridder piraat tovenaar vlinder riddar spöke trollkarl fjäril rycerz duch "
    "czarodziej wróżk motyl şövalye korsan hayalet kelebek волшебник бабочк чарівник метелик привид şehzade "
    "ksatria penyihir".split()
)
FIGURE_PHRASES = (
    "王様|国王|海賊|騎士|妖精|ドラゴン|雲|鳥|猫|海盗|骑士|巨龙|精灵|小鸟|云朵|왕|해적|기사|요정|구름|고양이|"
    "hiệp sĩ|cướp biển"
)
# What a model is put into a role for: to answer, to explain how, to leave out what holds it back.
ASKED_WORDS = frozenset(
    "answer answers explain respond svara how reply comply replies complies question questions "
    "request requests whatever anything illegal legal steps "
    "step bomb bombs weapon weapons drug drugs hack hacking malware virus poison kill meth exploit password "
    "como comment cómo wie hoe hur jak как як nasıl".split()
)
ASKED_STEMS = frozenset(
    "answer respond explain instruct unfilter uncensor guideline polic refus antwort frage fragen erklär "
    "anleitung répond question expliqu pregunt explic rispond domand spieg pergunt antwoord vraag vrag uitleg "
    "odpowi pytan wyjaśn ответ отвеч вопрос объясн відпові питан поясн svara fråg förklar cevap soru açıkla jawab "
    "pertanyaan refuser verweiger weiger".split()
)
ASKED_PHRASES = "回答|问题|解释|告诉|答え|質問|説明|教え|대답|질문|설명|답|trả lời|câu hỏi"
