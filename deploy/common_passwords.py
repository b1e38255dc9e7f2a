"""Make the list of the 10,000 most common passwords that the gateway refuses, and write it packed.

    python3 deploy/common_passwords.py        # writes gateway/domain/common-passwords.bin

People choose words and first names, alone or with a short number; runs of digits; walks over the keyboard; letters
written as digits. No published collection is copied here: this script makes the list from words and patterns, each with
a weight for how often people choose it, and keeps the 10,000 most likely. The file holds the
first 5 bytes of the SHA-256 of each password in lower case, sorted.
"""

import hashlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "gateway" / "domain" / "common-passwords.bin"
COUNT = 10_000
HASH_BYTES = 5
SHORTEST = 4

# Most chosen first, so that the place in the list is the weight.
WORDS = """
password qwerty iloveyou admin welcome monkey dragon letmein football baseball princess sunshine master shadow
superman michael jordan harley ranger hunter batman trustno thomas robert soccer hockey killer george charlie andrew
michelle jessica pepper daniel access joshua maggie starwars silver william dallas yankees ashley nicole jennifer
computer hello freedom whatever matrix ginger amanda summer secret merlin diamond nascar jackson cowboy eagles chicken
banana cookie flower orange purple love lovely angel angels babygirl chocolate butterfly friends family forever
liverpool chelsea arsenal barcelona everton celtic rangers juventus manchester united realmadrid internet samsung
google facebook pokemon naruto blink slipknot metallica nirvana eminem linkinpark greenday gandalf frodo startrek
starwars spiderman ironman wolverine batman1 phoenix thunder lightning tigger snoopy mickey minnie donald barbie
hannah justin matthew anthony christopher elizabeth patrick richard samantha alexander alexandra nicholas benjamin
jonathan stephanie rebecca rachel laura sarah maria anna lisa julia sophie emily olivia chloe lauren danielle natalie
victoria vanessa veronica patricia barbara sandra karen nancy linda susan margaret dorothy heather melissa kimberly
crystal amber tiffany brittany courtney kelsey taylor morgan jordan23 austin dakota madison brandon dylan kevin steven
brian edward ronald kenneth jeffrey gregory raymond lawrence walter peter henry arthur albert harold carlos jose juan
pedro miguel manuel antonio fernando ricardo roberto eduardo alejandro alejandra sebastian gabriel gabriela andrea
camila valentina daniela carolina paola natalia mariana isabella sofia lucia marta elena irene silvia francesca giulia
marco luca giovanni giuseppe alessandro matteo lorenzo andreas stefan thomas1 markus martin michaela sabine christian
sebastien nicolas camille marine pauline marion aurelie celine isabelle antoine julien maxime romain florian dominik
patrik katarina marketa natasha svetlana tatiana olga irina ekaterina anastasia dmitry sergey vladimir aleksandr ivan
boris max oliver oscar felix leo simba buddy bailey rocky buster bandit sammy molly daisy lucky coco lola bella
princess1 toby casper smokey tiger lion panther cougar jaguar leopard wolf bear eagle falcon hawk raven dolphin shark
whale horse pony bunny rabbit hamster kitten kitty puppy doggie cat dog bird turtle frog monkeys butter peanut cheese
bacon pizza burger coffee cookies candy sugar honey sweet sweety sweetie sweetheart baby babe boo darling beautiful
gorgeous sexy hottie lover loveme loveyou iloveu iloveme iloveyou1 mylove truelove lovers kisses hugs kissme missyou
forgetit nothing nobody anything something everything whoami idontknow dontknow mypassword thepassword passw0rd pass
passwd passport password1 changeme changeit default guest user root toor test testing tester temp temppass sample
example demo login logon access14 administrator sysadmin manager service server system network security secure private
public office company business work money dollar cash rich million bigboss boss chief king queen prince knight warrior
legend hero ninja samurai wizard magic merlin1 dragon1 dragons demon devil satan lucifer angel1 heaven jesus
jesuschrist christ god godisgood godislove blessed faith hope grace glory church bible prayer amen spirit trinity
buddha allah bismillah mohamed muhammad mohammed ahmed fatima mustafa krishna ganesh lakshmi sairam india pakistan
bangladesh indonesia jakarta malaysia singapore philippines pinoy thailand vietnam china beijing shanghai japan tokyo
korea australia sydney melbourne canada toronto montreal vancouver america newyork california florida texas chicago
boston houston denver seattle phoenix1 atlanta miami vegas lasvegas orlando detroit london england ireland scotland
france paris lyon marseille germany deutschland berlin hamburg munich bayern dortmund schalke frankfurt hallo passwort
schatz sommer winter fruehling herbst sonne sonnenschein blume katze hund pferd schule arbeit familie freunde fussball
ficken italy italia roma milano napoli juventus1 inter amore ciaociao forzainter spain espana madrid valencia sevilla
teamo tequiero amor amigos familia hola contrasena bonita hermosa corazon estrella princesa mexico colombia argentina
boca brasil flamengo corinthians palmeiras santos senha portugal benfica sporting porto lisboa holland amsterdam ajax
feyenoord welkom hallo123 wachtwoord geheim belgium antwerp sweden stockholm norway denmark finland poland polska
haslo kochanie legia warszawa russia moscow moskva privet parol lubov ukraine turkey turkiye istanbul galatasaray
fenerbahce besiktas trabzonspor askim canim sifre greece athens olympiakos hungary romania steaua dinamo bulgaria
january february march april may june july august september october november december monday tuesday wednesday
thursday friday saturday sunday spring summer1 autumn winter1 morning night midnight today tomorrow yesterday moon
moonlight sun sunny sunrise sunset star stars starlight sky rainbow rain storm snow snowball snowman ice fire flame
water ocean river island beach forest mountain garden rose roses lily daisy1 jasmine violet lavender tulip sunflower
green blue red black white yellow pink gold golden silver1 bronze brown gray crimson scarlet emerald sapphire ruby
pearl crystal1 mercedes porsche ferrari lamborghini corvette mustang camaro charger viper cobra firebird chevy
chevrolet ford toyota honda nissan subaru mazda suzuki yamaha kawasaki ducati harley1 harleydavidson bmw audi volvo
peugeot renault citroen fiat alfaromeo maserati bugatti bentley jaguar1 cadillac chrysler dodge jeep hummer tractor
truck trucker racing racecar speed speedy turbo nitro rocket skater skateboard snowboard surfer surfing swimmer
swimming runner running wrestling boxing karate golf golfer tennis volleyball basketball softball cricket rugby
hockey1 lacrosse gymnast dancer dancing ballet cheer cheerleader marathon bicycle cycling fishing fisherman hunting
camping climber sailing sailor pirate pirates cowboys steelers packers redskins broncos raiders giants jets patriots
dolphins1 falcons panthers bears lions vikings saints chargers titans bengals browns ravens colts lakers celtics bulls
knicks heat spurs rockets pistons redsox mets cubs braves dodgers tigers cardinals phillies indians orioles marlins
yankee bruins flyers penguins canucks senators sabres devils sharks oilers flames gators longhorns buckeyes wolverines
sooners bulldog bulldogs hurricane huskers badger wildcat wildcats mustangs rebels spartan spartans trojans gopher
hawkeye music guitar bassist drummer drums piano violin trumpet saxophone singer rockstar rocknroll rock metal punk
hiphop rapper reggae techno trance house jazz blues beatles rollingstones elvis presley lennon mccartney ledzeppelin
zeppelin pinkfloyd floyd acdc kiss queen1 bonjovi aerosmith gunsnroses slayer megadeth pantera korn tool deftones
disturbed incubus radiohead coldplay oasis blur muse depeche depechemode thecure u2 madonna britney shakira rihanna
beyonce mariah celine1 michaeljackson prince1 tupac biggie snoop snoopdogg dmx jayz wutang fifty nelly usher
chrisbrown jonasbrothers onedirection harrystyles justinbieber bieber hannahmontana highschoolmusical twilight edward1
bella1 jacob vampire werewolf zombie ghost skull skeleton monster godzilla dinosaur alien aliens predator terminator
robocop rambo rocky1 scarface godfather gangster mafia soprano sopranos simpsons homer bart bartman southpark cartman
kenny familyguy stewie scooby scoobydoo garfield tweety sylvester bugsbunny daffy popeye shrek nemo woody buzz
toystory lionking aladdin pocahontas cinderella snowwhite tinkerbell peterpan pooh winnie eeyore piglet stitch elmo
barney teletubbies powerpuff spongebob patrick1 dora harrypotter potter hermione hogwarts dumbledore voldemort
gryffindor gandalf1 legolas aragorn hobbit bilbo sauron mordor middleearth skywalker lukeskywalker vader darthvader
yoda jedi kenobi hansolo chewbacca bobafett sith stargate spock kirk picard enterprise voyager klingon borg babylon
firefly serenity matrix1 neo trinity1 morpheus bond jamesbond agent007 goldeneye sherlock holmes watson zelda link
mario luigi nintendo gameboy sonic sega playstation xbox xbox360 halo masterchief callofduty counterstrike counter
strike quake doom unreal diablo starcraft warcraft worldofwarcraft frostmourne arthas thrall illidan runescape
minecraft creeper roblox fortnite league leagueoflegends dota dota2 teemo garen pikachu charizard pokemon1 digimon
yugioh dragonball goku vegeta gohan sasuke itachi sakura kakashi bleach ichigo onepiece luffy sailormoon inuyasha
evangelion finalfantasy sephiroth cloud squall tifa aerith kingdomhearts sora riku metalgear snake solidsnake resident
evil biohazard tekken streetfighter mortal mortalkombat scorpion subzero raiden assassin assassins creed kratos
godofwar gamer gaming player playboy playgirl cowgirl bigdaddy bigdog bigboy bigman biggirl badboy badgirl goodboy
goodgirl littleman littleone babyboy babydoll babyface babycakes babyblue ladybug sugarpie honeybee cupcake muffin
pumpkin buttercup strawberry blueberry raspberry cherry apple apples pineapple mango lemon lemonade peaches watermelon
popcorn pancake noodle noodles taco burrito nacho pasta spaghetti meatball sausage turkey1 steak chips doritos pepsi
cocacola cola sprite mountaindew drpepper redbull monster1 beer budweiser heineken corona guinness whiskey vodka
tequila jackdaniels marlboro camel newport smoke smoker weed ganja marijuana stoner reefer cannabis bob bobmarley
marley rasta rastaman jamaica africa nigeria kenya ghana egypt cairo morocco tunisia algeria southafrica zimbabwe
brazil peru chile cuba havana hawaii alaska europe asia planet earth mars saturn jupiter venus neptune galaxy universe
cosmos apollo zeus hercules athena hermes poseidon odin thor loki freya valhalla viking achilles spartacus maximus
gladiator caesar julius brutus cleopatra pharaoh aphrodite artemis pandora icarus orion sirius aries taurus gemini
cancer leo1 virgo libra sagittarius capricorn aquarius pisces mother father mommy daddy mama papa mum dad sister
brother grandma grandpa nana cousin uncle auntie husband wife wifey hubby girlfriend boyfriend bestfriend friend
friendship friends1 buddy1 mybaby myangel mylife myfamily mygirl myboy mykids mylove1 mymother children kids baby1
babies twins twinkle teddy teddybear sparky spanky skippy scooter shorty shelby sheila shannon sharon shawn sean scott
samuel sam samson sabrina ryan russell roger rodney robin ricky rick renee regina raymond1 ralph rachel1 phillip
philip peter1 paul paula pamela norman nelson neil nathan monica mitchell miranda mike mickey1 melanie megan maxwell
maurice mary marvin martha mark marissa marie marianne marcus marcel mandy malcolm mackenzie lynn luis louise louis
logan leslie leonard leon lee larry lance kyle kristin kristen kirsten kim kelly keith kathy kathryn kathleen
katherine kate karl karina justine julie julian juliana juliet judy joyce josh josephine joseph jose1 jordan1 john
johnny johnson joel joe joanna jimmy jim jesse jeremy jerry jeff jean jasper jason janice jane jamie james jake jack
jackie isaac ian hugo howard holly hector hayley harvey harry harrison hannah1 gordon glenn gina gilbert gerald
georgia geoffrey gary gabrielle frank francis francisco franklin frances fred freddy florence fiona esther eric erica
erin enrique emma emmanuel elaine eileen edwin edgar duncan douglas doug donna dominic diego diana derek dennis denise
debbie deborah dean david darren darlene danny dan cynthia curtis craig connor colin claudia claire cindy chuck
christy christine christina chris cheryl chester charles charlotte cecilia cathy catherine casey carter carol caroline
carmen carl calvin cameron caitlin byron bryan bruce brooke brenda brendan bradley brad bonnie bobby billy beverly
beth bernard bernardo becky barry audrey ashton april1 annie angie angela andy andre amy allison allen alice alicia
alex alexis albert1 alan adrian adriana adam aaron abigail fuckyou asshole fuckoff fuckme fucker bitch bastard pussy
bullshit shithead dickhead jackass badass smartass dumbass butthead hardcore xxx playtime booty bigtits blowme lesbian
porn hentai horny sexsex lickme suckit cumshot please helpme openup opensesame letmein1 letmeinnow enter entrance come
comeon goaway getout stop start finish hello1 hellohello hellothere helloworld goodbye goodluck goodday goodnight
goodmorning thankyou thanks sorry happy happyday happiness smile smiley laugh laughing funny crazy crazygirl mental
insane psycho chaos havoc mayhem danger dangerous killer1 murder death dead deadman die suicide evil darkness dark
darkangel darkside darkstar nightmare shadow1 silence silent mystery secret1 secrets hidden unknown stranger lonely
alone broken heart hearts heartless brokenheart hate hateme ihateyou ihatelove fuck pain angry rage fury power
powerful strong stronger strength energy electric atomic nuclear bomb bomber sniper soldier army marine1 marines navy
airforce pilot aviator police cop sheriff detective fireman firefighter doctor nurse medical hospital teacher student
school college university class study science physics chemistry biology history geography english spanish french
german italian computer1 laptop desktop keyboard mouse monitor screen printer windows microsoft apple1 macintosh linux
ubuntu debian oracle database java python javascript program programmer developer hacker hacking hackme cracker coder
code binary digital cyber cyborg robot android iphone nokia motorola sony ericsson siemens philips panasonic toshiba
lenovo dell compaq hewlett packard intel pentium amazon ebay yahoo hotmail gmail myspace youtube twitter instagram
snapchat whatsapp skype linkedin dropbox netflix disney marvel avengers captain captainamerica hulk thor1 antman
deadpool xmen magneto wonderwoman superwoman supergirl superboy superstar superhero supernova supernatural joker
harleyquinn robin1 catwoman penguin riddler arrow flash greenlantern aquaman cyborg1 justice league1 gotham metropolis
krypton smallville clarkkent lois lane brucewayne marshall lilwayne eminem1 shady slim slimshady drake kanye kanyewest
rockyou poop poopoo boobies boobs butt peepee chicken1 cheesecake cheeseburger hamburger hotdog icecream milkshake
vanilla cinnamon chocolat bubbles bubblegum bubba bubba1 buffy angelus spike willow xander dawson joey chandler
monica1 phoebe ross rachelgreen central friends2 qwe asd zxc qaz wsx abc aaa zzz xyz pass1 mypass abcabc internet1
explorer navigator netscape wireless broadband telephone mobile cellphone camera picture photo photography artist
painter drawing design designer creative creation imagine imagination dream dreams dreamer dreaming believe believer
inspire destiny fate fortune lucky1 luckyone lucky7 luckycharm jackpot casino poker blackjack roulette gamble gambler
winner winning victory champion champions champ trophy number1 numberone first second third alpha beta gamma delta
omega sigma zulu bravo charlie1 echo foxtrot tango whiskey1 maverick goose iceman topgun mission impossible
ghostbuster ghostbusters indiana jones indianajones backtothefuture delorean knightrider kitt hasselhoff baywatch
macgyver ateam dukes hazzard general lee1 generallee airwolf bluethunder
"""
SUFFIXES = (
    "", "1", "123", "12", "1234", "2", "12345", "01", "123456", "11", "3", "7", "13", "21", "22", "23", "69", "007",
    "10", "5", "99", "00", "88", "77", "4", "8", "9", "6", "14", "55", "33", "44", "66", "321", "100", "101", "420",
    "666", "777", "1987", "1988", "1989", "1990", "1991", "1992", "1986", "1985", "1993", "1994", "1995", "2000",
    "2010", "2012", "2020", "2021", "2022", "2023", "2024", "2025", "2026", "1234567", "12345678", "123456789", "1!",
    "123!", "!", "!!", "@123", "#1",
)  # fmt: skip
PREFIXES = ("", "my", "the", "1", "123", "super", "big", "i")
ROWS = (
    "1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "azertyuiop", "abcdefghijklmnopqrstuvwxyz",
    "1qaz2wsx3edc4rfv5tgb6yhn", "qazwsxedcrfvtgbyhnujm", "zaq12wsxcde34rfvbgt5", "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0", "a1b2c3d4e5f6g7h8", "1a2b3c4d5e6f7g8h", "abcd1234567890", "abc1234567890",
    "qwer1234567890", "qwerty1234567890", "asdf1234567890", "asd1234567890", "qwe1234567890", "zxc1234567890",
    "zxcv1234567890", "a1234567890", "aa1234567890", "q1234567890", "147258369", "159753456852", "741852963",
    "789456123", "963852741", "112233445566778899", "1122334455", "123321123", "102030405060", "1029384756",
    "0987654321", "9876543210", "01234567890", "qweasdzxc", "asdzxcqwe", "qazxswedc", "wsxedcrfv", "poiuytrewq",
    "lkjhgfdsa", "mnbvcxz", "asdfqwer1234", "qwerasdfzxcv", "qwertyasdfgh", "1234qwerasdf", "123qweasdzxc",
    "12qwaszx", "1q1q1q1q1q", "q1q1q1q1", "1212121212", "121314151617", "1357924680", "13579246810", "2468013579",
    "24681012", "1123581321", "3141592653589793", "2718281828", "11235813", "asdfgh123456", "qwertyui123",
    "zxcvbn123456", "qwert12345", "asdfg12345", "p0o9i8u7y6", "1234abcd5678", "123abc456def",
)  # fmt: skip
LEET = {"a": "a@4", "e": "e3", "i": "i1!", "o": "o0", "s": "s$5", "t": "t7", "l": "l1"}


def weighted() -> Iterator[tuple[float, str]]:
    """Yield candidates, each with its weight: the lower, the more common. Some come twice."""
    words = list(dict.fromkeys(WORDS.split()))
    for row in ROWS:
        for text in (row, row[::-1]):
            for begin, length in product(range(len(text)), range(SHORTEST, len(text) + 1)):
                if begin + length <= len(text):
                    yield 40.0 * (begin + 1), text[begin : begin + length]
    for digit in "0123456789abcdefghijklmnopqrstuvwxyz":
        for length in range(SHORTEST, 16):
            yield 100.0, digit * length
    for first, second in product("0123456789", repeat=2):
        for times in (2, 3, 4, 5):
            yield 2000.0, (first + second) * times
            yield 2000.0, first * times + second * times
    for block in (
        "123",
        "321",
        "1234",
        "4321",
        "abc",
        "asd",
        "qwe",
        "zxc",
        "qaz",
        "wsx",
        "asdf",
        "qwer",
        "12345",
        "147",
    ):
        for times in (2, 3, 4):
            yield 100.0, block * times
    for year in range(1950, 2031):
        yield 500.0, str(year)
        yield 900.0, f"{year}{year}"
    for place, word in enumerate(words, 1):
        yield place / 10, word  # all of the words
        for number, suffix in enumerate(SUFFIXES, 1):
            yield place * number, word + suffix
        for number, prefix in enumerate(PREFIXES[1:], 6):
            yield place * number, prefix + word
        yield place * 20, word + word
        yield place * 30, word[::-1]
        if place <= 60:
            for letters in product(*(LEET.get(letter, letter) for letter in word)):
                for number, suffix in enumerate(SUFFIXES[:6], 1):
                    changes = sum(1 for mine, theirs in zip(letters, word, strict=True) if mine != theirs)
                    yield place * number * (1 + changes) * 10, "".join(letters) + suffix


def passwords() -> list[str]:
    """Return the most common passwords, the commonest first."""
    weights: dict[str, float] = {}
    for weight, text in weighted():
        if len(text) >= SHORTEST:
            weights[text] = min(weight, weights.get(text, weight))
    return sorted(weights, key=lambda text: (weights[text], text))[:COUNT]


def packed() -> bytes:
    """Return the content of the file."""
    return b"".join(sorted(hashlib.sha256(text.encode()).digest()[:HASH_BYTES] for text in passwords()))


if __name__ == "__main__":
    TARGET.write_bytes(packed())
